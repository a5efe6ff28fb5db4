mod demo;
mod wrap;
