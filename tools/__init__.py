"""Tools of gradbed's maintainers, which are not part of the package."""
