//# allFunctionsCalledOnLoad
var r="user_error,error,timeout,refused",e="error,timeout,refused";export{r as a,e as b};
