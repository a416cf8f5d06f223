//! What tools saw, kept: the same look is taken once, whoever asks for it, and only as many are
//! taken at a time as there are cores.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use deeplook_tools::{Scene, ToolError, ToolOutput, Toolbox};
use serde_json::json;
use tokio::sync::OnceCell;

use super::cores::{Core, Cores};
use crate::hash::Hash;
use crate::message::{MediaType, SentPicture, ToolCall};
use crate::sending::Preparation;

/// What is kept at most, in bytes of pictures.
const MOST: usize = 192 << 20;

/// The looks of all judgements that share it.
#[derive(Debug, Default)]
pub struct Looks {
    cores: Cores,
    kept: Mutex<Kept>,
}

/// A look: what the tool saw, and its pictures as the trace keeps and the model gets them.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) output: ToolOutput,
    pub(super) pictures: Vec<MadePicture>,
}

#[derive(Debug)]
pub(super) struct MadePicture {
    /// As the tool made it; absent where nobody keeps it and the model gets it otherwise.
    pub(super) png: Option<Arc<[u8]>>,
    /// The hash of that, or of its pixels.
    pub(super) hash: Hash,
    pub(super) sent: Arc<SentPicture>,
}

/// What becomes of the pictures that tools make.
#[derive(Debug, Clone, Copy)]
pub(super) struct Encoding {
    /// How the model gets them.
    pub(super) preparation: Preparation,
    /// Whether a trace keeps them.
    pub(super) kept: bool,
}

/// A look, or why the model was refused one.
type Taken = Result<Arc<Look>, String>;

#[derive(Debug, Default)]
struct Kept {
    looks: HashMap<Hash, Arc<OnceCell<Taken>>>,
    /// The finished ones, oldest first.
    order: VecDeque<(Hash, usize)>,
    bytes: usize,
}

/// Why there is no look at all.
pub(super) enum NoLook {
    Broken(ToolError),
    Crashed,
}

impl Looks {
    /// Looks with a tool, unless it has looked at the same with the same arguments before. Where files
    /// are kept, its pictures are encoded for the trace too.
    pub(super) async fn look(
        &self,
        toolbox: &Arc<Toolbox>,
        call: &ToolCall,
        scene: &Scene,
        sight: &Sight,
        Encoding { preparation, kept }: Encoding,
    ) -> Result<Taken, NoLook> {
        let what = json!([
            call.name,
            call.arguments,
            toolbox.settings().get(&call.name),
            preparation,
            kept,
            sight.0,
        ]);
        let key = Hash::of(what.to_string().as_bytes());
        let cell = Arc::clone(self.lock().looks.entry(key.clone()).or_default());
        let mut fresh = false;
        let take = async {
            fresh = true;
            let _core = self.core().await;
            let (toolbox, scene) = (Arc::clone(toolbox), scene.clone());
            let (name, arguments) = (call.name.clone(), call.arguments.clone());
            let look = move || {
                let output = toolbox.call(&name, &arguments, &scene)?;
                Ok::<_, ToolError>(Look::of(output, Encoding { preparation, kept }))
            };
            match tokio::task::spawn_blocking(look).await {
                Ok(Ok(look)) => Ok(Ok(Arc::new(look))),
                Ok(Err(ToolError::Refused(text))) => Ok(Err(text)),
                Ok(Err(broken @ ToolError::Broken { .. })) => Err(NoLook::Broken(broken)),
                Err(_) => Err(NoLook::Crashed),
            }
        };
        let taken = cell.get_or_try_init(|| take).await.cloned();
        match &taken {
            Ok(taken) if fresh => self.lock().add(key, taken),
            Ok(_) => {}
            Err(_) => drop(self.lock().looks.remove(&key)),
        }
        taken
    }

    /// The pictures of something that was seen before, as the trace keeps and the model gets them.
    pub(super) async fn prepare(
        &self,
        output: ToolOutput,
        encoding: Encoding,
    ) -> Result<Arc<Look>, NoLook> {
        let _core = self.core().await;
        let look = tokio::task::spawn_blocking(move || Look::of(output, encoding)).await;
        look.map(Arc::new).map_err(|_| NoLook::Crashed)
    }

    /// Waits for a core, for anything that keeps one busy; it is given back with what is returned.
    pub async fn core(&self) -> Core<'_> {
        self.cores.one().await
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn add(&mut self, key: Hash, taken: &Taken) {
        let bytes = taken.as_ref().map_or(0, |look| look.bytes()) + 1024;
        self.bytes += bytes;
        self.order.push_back((key, bytes));
        while self.bytes > MOST {
            let Some((key, bytes)) = self.order.pop_front() else { break };
            self.looks.remove(&key);
            self.bytes -= bytes;
        }
    }
}

impl Look {
    fn of(output: ToolOutput, Encoding { preparation, kept }: Encoding) -> Self {
        let pictures = output.pictures.iter().map(|view| {
            let sent = Arc::new(preparation.prepare(&view.name, "", &view.picture));
            let as_made = sent.media == MediaType::Png && sent.size == view.picture.size();
            let (png, hash) = if as_made {
                (Some(Arc::clone(&sent.bytes)), sent.hash.clone())
            } else if kept {
                let png = view.picture.to_png();
                let hash = Hash::of(&png);
                (Some(png.into()), hash)
            } else {
                (None, Hash::of(view.picture.rgb()))
            };
            MadePicture { png, hash, sent }
        });
        Self { pictures: pictures.collect(), output }
    }

    fn bytes(&self) -> usize {
        let views = self.output.pictures.iter().map(|view| view.picture.rgb().len());
        let encoded = self
            .pictures
            .iter()
            .map(|made| made.png.as_ref().map_or(0, |png| png.len()) + made.sent.bytes.len());
        views.chain(encoded).sum::<usize>() + self.output.text.len()
    }
}

/// Stands for all that a tool can see in a scene. Scenes only grow, and so does this.
#[derive(Debug)]
pub(super) struct Sight(Hash, usize);

impl Sight {
    pub(super) fn of(scene: &Scene) -> Self {
        let beginning = json!([scene.boxes(), scene.room()]);
        let mut sight = Self(Hash::of(beginning.to_string().as_bytes()), 0);
        sight.update(scene);
        sight
    }

    /// Takes in what was added to the scene.
    pub(super) fn update(&mut self, scene: &Scene) {
        for (view, shown) in scene.shown().skip(self.1) {
            let pixels = Hash::of(view.picture.rgb());
            let size = view.picture.size();
            let one = json!([self.0, view.name, view.panels, size, shown, pixels]);
            *self = Self(Hash::of(one.to_string().as_bytes()), self.1 + 1);
        }
    }
}
