// The theme's scripts/fontawesome.js holds two thousand icons (half a megabyte compressed); the book shows these.
import { dom, library } from "@fortawesome/fontawesome-svg-core";
import * as icons from "./icon-list.js";

library.add(...Object.values(icons));
dom.watch();
