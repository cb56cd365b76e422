//! Nothing: the features that this package asks for are what it is for.
