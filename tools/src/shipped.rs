//! Files that come with this crate, for whoever installs and fetches models. They stand here because a
//! package can only hold what is in its own folder.

/// Every model file that can be used, and the runtime: where from, hash, licence.
pub const MODELS: &str = include_str!("../models.toml");

/// What converts weights; it needs nothing but Python.
pub const CONVERTER: &str = include_str!("../convert/ncnn_to_onnx.py");

/// The files of the demo detector by name.
pub const DEMO_DETECTOR: [(&str, &[u8]); 3] = [
    ("model.onnx", include_bytes!("../models/demo-detector/model.onnx")),
    ("tokenizer.json", include_bytes!("../models/demo-detector/tokenizer.json")),
    (
        "preprocessor_config.json",
        include_bytes!("../models/demo-detector/preprocessor_config.json"),
    ),
];
