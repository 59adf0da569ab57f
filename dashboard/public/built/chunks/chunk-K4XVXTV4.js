function o(t,c){let e=URL.createObjectURL(c);Object.assign(document.createElement("a"),{href:e,download:t}).click(),setTimeout(()=>URL.revokeObjectURL(e),6e4)}export{o as a};
