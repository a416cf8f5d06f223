//! What a judge of image edits can look through.
//!
//! Synchronous and deterministic: the same pictures and arguments give the same bytes. Nothing here
//! knows of language models, clocks, traces or the network.
//!
//! ```
//! use deeplook_tools::{Picture, Scene, Toolbox};
//!
//! let grey = Picture::from_rgb(image::RgbImage::from_pixel(64, 48, image::Rgb([90; 3]))).unwrap();
//! let scene = Scene::new([grey.clone(), grey]);
//! let seen = Toolbox::standard().call("localize_differences", &serde_json::json!({}), &scene)?;
//! assert!(seen.text.contains("are the same"));
//! # Ok::<(), deeplook_tools::ToolError>(())
//! ```

mod bounds;
pub mod colour;
pub mod coords;
pub mod declaration;
pub mod difference;
pub mod enhancer;
mod files;
pub mod grounding;
mod memory;
pub mod onnx;
mod pair;
pub mod picture;
mod pool;
pub mod registration;
pub mod scene;
pub mod shipped;
mod side_by_side;
pub mod sweep;
pub mod text;
pub mod tool;
mod toolbox;
pub mod zoom;

pub use colour::MeasureColour;
pub use coords::{BoxConvention, PixelBox, Size};
pub use declaration::{Declaration, Declared, Networks, TOOLS, ToolSettings};
pub use enhancer::{Enhance, Enhancer};
pub use picture::{Picture, PictureError};
pub use scene::Scene;
pub use tool::{Tool, ToolError, ToolOutput};
pub use toolbox::{ToolSpec, Toolbox};
