use std::path::PathBuf;

use clap::Args;

use super::judge::ToolFlags;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  deeplook tool list
  deeplook tool localize_differences before.png after.png --out crops/
  deeplook tool zoom_in photo.jpg --args '{\"bbox\": [10, 20, 60, 80]}'
  deeplook tool zoom_in before.png after.png --args '{\"target_image\": \"both\", \"bbox\": [10, 20, 60, 80]}'
  deeplook tool detect_object photo.jpg --args '{\"detect_object_name\": \"yellow bicycle\"}'")]
pub(crate) struct ToolArgs {
    /// The tool to use, or `list` to see all of them with their arguments.
    pub name: String,
    /// Pictures; they get the names "Original Image", "Edited Image" and "Reference Image".
    #[arg(value_name = "IMAGE", num_args = 0..=3)]
    pub images: Vec<PathBuf>,
    /// The tool's arguments as a JSON object; boxes are [x1, y1, x2, y2] in pixels.
    #[arg(long, value_name = "JSON")]
    pub args: Option<String>,
    /// Where to write the pictures that the tool makes [default: a new temporary folder].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print one JSON object: {"text", "data", "images": [{"name", "path"}]}.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub tools: ToolFlags,
}
