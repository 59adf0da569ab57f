function e(n){try{return JSON.parse(n)}catch{return}}function r(n){return e(n)!==void 0&&!n.includes('"(redacted)"')}export{e as a,r as b};
