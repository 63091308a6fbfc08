"""The jobs themselves: one module each, with `main(argv)`."""
