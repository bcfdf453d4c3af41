"""How the site's pages show what notebooks store: figures as SVG in the page's fonts and colours, and widgets."""
