// Before anything is drawn: light or dark as it was chosen here, and whether somebody is signed in, whom the frame is for.
const { dataset } = document.documentElement;
const theme = localStorage.getItem("syncline.theme");
if (theme === "light" || theme === "dark") dataset.theme = theme;
if (localStorage.getItem("syncline.admin") !== null) dataset.admin = "true";
