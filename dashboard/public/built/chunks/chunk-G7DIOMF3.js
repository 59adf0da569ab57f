import{ma as t}from"./chunk-63RJJ2FW.js";async function r(o,e){try{await navigator.clipboard.writeText(o),t(e)}catch{t("Select the text to copy it. The clipboard needs HTTPS.")}}export{r as a};
