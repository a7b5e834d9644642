"""The data types: one serial specification a module, and the catalogue of them all."""
