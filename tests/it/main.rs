//! The integration tests, one binary: one module for each part of the project.

mod wire;
