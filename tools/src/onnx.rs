//! ONNX Runtime: the only file that names `ort`.
//!
//! The library is loaded when the first model is, from a path that the caller found. Nothing else in
//! this crate needs it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use ort::environment::{Environment, GlobalThreadPoolOptions};
use ort::session::SessionInputValue;
use ort::session::builder::GraphOptimizationLevel;
use ort::value::{TensorElementType, TensorRef, ValueType};

use crate::pool::Pool;

/// The sessions of one model hold no more than so many bytes of it together; one there always is.
const MOST_BYTES: u64 = 2 << 30;
/// More at a time would only wait for each other's memory.
const MOST_SESSIONS: usize = 4;
/// No model of ours wants an input as wide as this.
const MOST_EXTENT: usize = 1 << 16;
/// No model of ours gives so many numbers at once.
const MOST_OUTPUT: usize = 1 << 26;

/// The loaded library. There is one for the whole process.
#[derive(Debug, Clone, Copy)]
pub struct Runtime(&'static Loaded);

#[derive(Debug)]
struct Loaded {
    environment: Environment,
    library: PathBuf,
}

impl Runtime {
    /// Loads the library, or gives the one that is already there, whatever its path was.
    pub fn load(library: &Path) -> Result<Self, OnnxError> {
        static LOADED: OnceLock<Loaded> = OnceLock::new();
        static LOADING: Mutex<()> = Mutex::new(());
        let _one_at_a_time = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(loaded) = LOADED.get() {
            return Ok(Self(loaded));
        }
        let unusable = |reason: String| OnnxError::Library { library: library.to_owned(), reason };
        // A relative name would be searched for in the system's folders.
        let path = std::path::absolute(library).map_err(|e| unusable(e.to_string()))?;
        let builder = ort::init_from(&path).map_err(|error| {
            let cause = match &error {
                ort::LoadDynamicError::Dlopen { error, .. } => std::error::Error::source(error),
                _ => None,
            };
            unusable(cause.map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        let threads = GlobalThreadPoolOptions::default()
            .with_intra_threads(cores())
            // Waiting threads must not take the cores from other work.
            .and_then(|threads| threads.with_spin_control(false))
            .map_err(|error| unusable(error.message().to_owned()))?;
        let environment = builder
            .with_name("deeplook")
            .with_telemetry(false)
            // One run alone has every core; several share them, whatever models they run.
            .with_global_thread_pool(threads)
            // What goes wrong comes back as an error; the library's own lines would only disturb.
            .with_logger(Arc::new(|_, _, _, _, _| {}))
            .build()
            .map_err(|error| unusable(error.message().to_owned()))?;
        Ok(Self(LOADED.get_or_init(|| Loaded { environment, library: path })))
    }

    /// The file that was loaded.
    pub fn library(self) -> &'static Path {
        &self.0.library
    }

    /// What the library says of itself, with its version.
    pub fn description(self) -> &'static str {
        ort::info()
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A model, ready to run. What runs at the same time runs in sessions of its own, which are made when they
/// are first needed and kept.
#[derive(Debug)]
pub struct Session {
    path: PathBuf,
    stamp: Option<Stamp>,
    runtime: Runtime,
    sessions: Pool<ort::session::Session>,
    inputs: BTreeMap<String, Port>,
    outputs: Vec<String>,
}

/// What a model wants for an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its element type, where it is a tensor of a type that we know.
    pub element: Option<Element>,
    /// Its extents; `None` where any will do.
    pub shape: Vec<Option<usize>>,
}

/// An element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// 32-bit floating point.
    F32,
    /// 64-bit integers.
    I64,
    /// Truth values.
    Bool,
}

/// Numbers with extents.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor<T> {
    /// The extents, outermost first.
    pub shape: Vec<usize>,
    /// The values, innermost extent fastest.
    pub data: Vec<T>,
}

impl<T> Tensor<T> {
    /// A tensor of these extents.
    pub fn new(shape: impl Into<Vec<usize>>, data: Vec<T>) -> Self {
        Self { shape: shape.into(), data }
    }
}

/// A value for an input.
#[derive(Debug, Clone)]
pub enum Input {
    /// Floating point.
    F32(Tensor<f32>),
    /// Integers.
    I64(Tensor<i64>),
    /// Truth values.
    Bool(Tensor<bool>),
}

impl Session {
    /// Reads a model file.
    pub fn load(runtime: Runtime, path: &Path) -> Result<Self, OnnxError> {
        let stamp = stamp(path);
        let session = open(runtime, path).map_err(|error| OnnxError::Model {
            model: path.to_owned(),
            reason: error.message().to_owned(),
        })?;
        let inputs = session.inputs().iter();
        let inputs: BTreeMap<String, Port> =
            inputs.map(|port| (port.name().to_owned(), Port::of(port.dtype()))).collect();
        let absurd =
            |(_, port): &(&String, &Port)| port.shape.iter().flatten().any(|&n| n > MOST_EXTENT);
        if let Some((name, port)) = inputs.iter().find(absurd) {
            let reason = format!("its input {name:?} wants the extents {:?}", port.shape);
            return Err(OnnxError::Model { model: path.to_owned(), reason });
        }
        let outputs = session.outputs().iter().map(|port| port.name().to_owned()).collect();
        let bytes = stamp.map_or(u64::MAX, |(bytes, _)| bytes.max(1));
        let most = (MOST_BYTES / bytes).clamp(1, MOST_SESSIONS.min(cores()) as u64) as usize;
        let sessions = Pool::new(session, most);
        Ok(Self { path: path.to_owned(), stamp, runtime, sessions, inputs, outputs })
    }

    /// The model's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The inputs by name.
    pub fn inputs(&self) -> &BTreeMap<String, Port> {
        &self.inputs
    }

    /// The names of the outputs.
    pub fn outputs(&self) -> &[String] {
        &self.outputs
    }

    /// What the model file says under `key`, beside its network.
    pub fn metadata(&self, key: &str) -> Option<String> {
        self.sessions.with(|| None, |session| session.metadata().ok()?.custom(key))
    }

    /// How many sessions there are: as many as there ever were runs at once, up to a bound.
    pub fn sessions(&self) -> usize {
        self.sessions.made()
    }

    /// Runs the model; gives the outputs named in `wanted`, in that order.
    pub fn run<const N: usize>(
        &self,
        inputs: &[(&str, Input)],
        wanted: [&str; N],
    ) -> Result<[Tensor<f32>; N], OnnxError> {
        let failed = |reason: String| OnnxError::Run { model: self.path.clone(), reason };
        let inputs: Vec<(&str, SessionInputValue<'_>)> = inputs
            .iter()
            .map(|(name, input)| Ok((*name, input.view()?)))
            .collect::<Result<_, ort::Error>>()
            .map_err(|error| failed(error.message().to_owned()))?;
        self.sessions.with(
            || self.another(),
            |session| {
                let outputs =
                    session.run(inputs).map_err(|error| failed(error.message().to_owned()))?;
                let mut found = Vec::with_capacity(N);
                for name in wanted {
                    let output = outputs
                        .get(name)
                        .ok_or_else(|| failed(format!("it gave no output {name:?}")))?;
                    let (shape, data) = output
                        .try_extract_tensor::<f32>()
                        .map_err(|error| failed(format!("output {name:?}: {}", error.message())))?;
                    let shape: Vec<usize> = shape.iter().map(|&n| n.max(0) as usize).collect();
                    if data.len() > MOST_OUTPUT || shape.iter().product::<usize>() != data.len() {
                        return Err(failed(format!("output {name:?} has the extents {shape:?}")));
                    }
                    found.push(Tensor::new(shape, data.to_vec()));
                }
                found.try_into().map_err(|_| failed("it gave too few outputs".to_owned()))
            },
        )
    }

    /// One more session, only to save time: where there is no memory for it, or the file is no longer the
    /// one that was read, runs wait for each other.
    fn another(&self) -> Option<ort::session::Session> {
        let same = self.stamp.is_some() && self.stamp == stamp(&self.path);
        same.then(|| open(self.runtime, &self.path).ok()).flatten()
    }
}

/// Length and time of a file.
type Stamp = (u64, SystemTime);

fn stamp(path: &Path) -> Option<Stamp> {
    let facts = path.metadata().ok()?;
    Some((facts.len(), facts.modified().ok()?))
}

fn open(runtime: Runtime, path: &Path) -> Result<ort::session::Session, ort::Error> {
    ort::session::Session::builder(&runtime.0.environment)?
        // Not `Level3`: older runtimes refuse it.
        .with_optimization_level(GraphOptimizationLevel::All)?
        .with_deterministic_compute(true)?
        .commit_from_file(path)
}

impl Input {
    fn view(&self) -> Result<SessionInputValue<'_>, ort::Error> {
        fn shaped<T>(tensor: &Tensor<T>) -> (Vec<usize>, &[T]) {
            (tensor.shape.clone(), tensor.data.as_slice())
        }
        Ok(match self {
            Self::F32(tensor) => TensorRef::from_array_view(shaped(tensor))?.into(),
            Self::I64(tensor) => TensorRef::from_array_view(shaped(tensor))?.into(),
            Self::Bool(tensor) => TensorRef::from_array_view(shaped(tensor))?.into(),
        })
    }
}

impl Port {
    fn of(kind: &ValueType) -> Self {
        let ValueType::Tensor { ty, shape, .. } = kind else {
            return Self { element: None, shape: Vec::new() };
        };
        let element = match ty {
            TensorElementType::Float32 => Some(Element::F32),
            TensorElementType::Int64 => Some(Element::I64),
            TensorElementType::Bool => Some(Element::Bool),
            _ => None,
        };
        Self { element, shape: shape.iter().map(|&n| usize::try_from(n).ok()).collect() }
    }
}

/// What went wrong with the runtime or a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OnnxError {
    /// The library cannot be loaded.
    #[error(
        "cannot load ONNX Runtime from {}: {reason}; set ORT_DYLIB_PATH to a working library of \
         version 1.19 or newer, or unset it", library.display()
    )]
    Library {
        /// Which file.
        library: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The file is not a model that the runtime reads.
    #[error("cannot read the model {}: {reason}; fetch or export it again", model.display())]
    Model {
        /// Which file.
        model: PathBuf,
        /// What the runtime said.
        reason: String,
    },
    /// The model does not run on what it got.
    #[error("the model {} failed: {reason}", model.display())]
    Run {
        /// Which file.
        model: PathBuf,
        /// What the runtime said.
        reason: String,
    },
}
