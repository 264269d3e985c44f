// The object that the precompiled headers of the unit tests belong to; it holds nothing.
