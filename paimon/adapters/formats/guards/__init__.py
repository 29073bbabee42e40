"""Guards against hostile files: checks of sizes, lengths, counts and nesting before a decoder trusts the bytes."""
