import{c as a,e}from"./chunk-NKFHEKK3.js";var o=a(e());function t({tone:n,children:d}){return(0,o.jsx)("span",{className:"badge","data-tone":n,children:d})}export{t as a};
