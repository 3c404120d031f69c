document.title = "A page that stands in for the built one, with enough in it to be packed";
