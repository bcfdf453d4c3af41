// The theme's scripts/fontawesome.js holds two thousand icons (half a megabyte compressed); the book shows these.
import { config, dom, library } from "@fortawesome/fontawesome-svg-core";
import * as icons from "./icon-list.js";

// Their style without its names for fonts, which are variables of the whole page: all of it would be styled anew.
config.autoAddCss = false;
const style = document.createElement("style");
style.textContent = dom.css().replace(/:root[^}]*}/g, "");
document.head.prepend(style);

library.add(...Object.values(icons));
dom.watch();
