export { faGithub } from "@fortawesome/free-brands-svg-icons";
// The theme's: navigation, search, light and dark, full screen, download, source, table of contents.
export {
  faAngleLeft, faAngleRight, faArrowUp, faBars, faChevronDown, faCircleHalfStroke, faCode, faDownload, faExpand, faFile,
  faFilePdf, faHome, faLightbulb, faList, faMagnifyingGlass, faMoon, faOutdent, faPencil, faRocket, faSun,
} from "@fortawesome/free-solid-svg-icons";
