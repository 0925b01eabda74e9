//! Server assignors as a coordinator drives them: facts in, shares out (issue 4, must-show 5).

mod examples;
mod kafka;
mod properties;
mod world;
