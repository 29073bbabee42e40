"""Run statements through the public methods of catalogs and tables."""
