var e,r=function(n){e=n},t=function(){if(e)return e;if(typeof __webpack_nonce__<"u")return __webpack_nonce__};export{r as a,t as b};
