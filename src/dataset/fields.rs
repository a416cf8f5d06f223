//! Which field of a file means what: our names, the aliases of other benchmarks, and a mapping that
//! a user gives where neither fits.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::boxes::BoxForm;
use super::problem::{DataSetError, listed, shown};
use crate::files;

/// What is known of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// The name of the case.
    Id,
    /// The picture before the edit.
    Source,
    /// What the editor was told.
    Instruction,
    /// The picture after the edit, of a single editor.
    Edited,
    /// The name of that editor.
    Editor,
    /// The pictures after the edit by editor.
    Edits,
    /// The instruction's type.
    Type,
    /// A phrase for the object to edit.
    Target,
    /// Where that object is.
    Boxes,
    /// What a good edit looks like.
    Reference,
    /// Further pictures by name.
    Pictures,
    /// Further places by name.
    Regions,
    /// Questions about the edit.
    Questions,
    /// What else is known, by name.
    Facts,
}

/// A field's names. The sure ones mean nothing else, the first of them wins; one of the others is
/// only taken where no second one is there.
struct Known {
    field: Field,
    sure: &'static [&'static str],
    likely: &'static [&'static str],
}

const KNOWN: [Known; 14] = [
    Known {
        field: Field::Id,
        sure: &["id", "case_id", "sample_id"],
        likely: &["uid", "index", "idx", "key"],
    },
    Known {
        field: Field::Source,
        sure: &["source", "image", "source_image"],
        likely: &[
            "src_image",
            "input_image",
            "original_image",
            "source_path",
            "image_path",
            "src",
            "img",
            "source_img",
            "input_img",
            "src_img",
            "original",
            "before",
            "before_image",
            "input",
        ],
    },
    Known {
        field: Field::Instruction,
        sure: &["instruction", "edit_operation", "edit_instruction"],
        likely: &[
            "editing_instruction",
            "instruction_text",
            "edit_prompt",
            "edit_text",
            "prompt",
            "text",
        ],
    },
    Known {
        field: Field::Edited,
        sure: &["edited", "edited_image"],
        likely: &["output_image", "output_img", "edited_img", "after", "after_image", "output"],
    },
    Known { field: Field::Editor, sure: &["editor"], likely: &["editor_name"] },
    Known { field: Field::Edits, sure: &["edits"], likely: &["edited_images"] },
    Known {
        field: Field::Type,
        sure: &["type", "instruction_type", "edit_type"],
        likely: &["operation_type", "task_type", "edit_category", "category", "kind", "task"],
    },
    Known {
        field: Field::Target,
        sure: &["target", "target_object"],
        likely: &["target_name", "object_name", "edit_object", "edited_object", "object"],
    },
    Known {
        field: Field::Boxes,
        sure: &["boxes", "box"],
        likely: &[
            "bbox",
            "bboxes",
            "bounding_box",
            "bounding_boxes",
            "target_box",
            "target_boxes",
            "target_bbox",
            "target_bboxes",
            "object_bbox",
            "object_bboxes",
            "bbox_xyxy",
            "bboxes_xyxy",
            "boxes_xyxy",
            "bbox_xywh",
            "bboxes_xywh",
            "boxes_xywh",
        ],
    },
    Known {
        field: Field::Reference,
        sure: &["reference", "reference_image"],
        likely: &["reference_path", "ref_image", "ground_truth", "gt_image"],
    },
    Known { field: Field::Pictures, sure: &["pictures"], likely: &[] },
    Known { field: Field::Regions, sure: &["regions"], likely: &[] },
    Known { field: Field::Questions, sure: &["questions"], likely: &[] },
    Known { field: Field::Facts, sure: &["facts"], likely: &[] },
];

impl Field {
    /// The name in our own files.
    pub fn name(self) -> &'static str {
        self.known().sure[0]
    }

    fn known(self) -> &'static Known {
        KNOWN.iter().find(|known| known.field == self).unwrap_or(&KNOWN[0])
    }

    /// Whether a column of this name can mean nothing else.
    pub(super) fn is_surely(self, name: &str) -> bool {
        self.known().sure.contains(&name)
    }

    fn is_needed(self) -> bool {
        matches!(self, Self::Source | Self::Instruction)
    }
}

impl FromStr for Field {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        KNOWN.iter().map(|known| known.field).find(|field| field.name() == text).ok_or_else(|| {
            let names: Vec<&str> = KNOWN.iter().map(|known| known.field.name()).collect();
            format!("there is no field {}; use one of {}", shown(text), names.join(", "))
        })
    }
}

/// What a user says about a file's fields; written down as a table of names, such as
/// `{ boxes = "bbox:xywh" }`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>", into = "BTreeMap<String, String>")]
pub struct Mapping(BTreeMap<Field, Mapped>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mapped {
    /// Empty where the field is to be left aside.
    name: String,
    form: Option<BoxForm>,
}

impl Mapping {
    /// Takes what was typed: each is `field=name`, `boxes=name:xywh`, or the path of a TOML file of
    /// such pairs. The later wins.
    pub fn parse<S: AsRef<str>>(given: &[S]) -> Result<Self, DataSetError> {
        let mut mapping = Self::default();
        for given in given.iter().map(AsRef::as_ref) {
            let fail = |what| DataSetError::Map { given: given.to_owned(), what };
            match given.split_once('=') {
                Some((field, name)) => mapping.set(field.trim(), name.trim()).map_err(fail)?,
                None => mapping.read(Path::new(given)).map_err(fail)?,
            }
        }
        Ok(mapping)
    }

    fn read(&mut self, path: &Path) -> Result<(), String> {
        let hint =
            "write field=name, or name a TOML file of such lines: instruction = \"my_field\"";
        let text = files::read_small_text(path).map_err(|what| format!("{what}; {hint}"))?;
        let pairs: BTreeMap<String, String> =
            toml::from_str(&text).map_err(|error| format!("{}; {hint}", error.message()))?;
        pairs.iter().try_for_each(|(field, name)| self.set(field, name))
    }

    /// These, and where `others` say something of the same field, that.
    pub fn replaced_by(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Our name of each field, and the file's.
    pub(super) fn names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(field, mapped)| (field.name(), mapped.name.as_str()))
    }

    /// Only what it says of how boxes are written.
    pub(super) fn only_forms(&self) -> Self {
        let boxes = self.0.get(&Field::Boxes).filter(|mapped| mapped.form.is_some());
        let mapped =
            boxes.map(|mapped| Mapped { name: Field::Boxes.name().into(), ..mapped.clone() });
        Self(mapped.map(|mapped| (Field::Boxes, mapped)).into_iter().collect())
    }

    fn set(&mut self, field: &str, name: &str) -> Result<(), String> {
        let field: Field = field.parse()?;
        let (name, form) = match name.rsplit_once(':') {
            Some((name, form)) if field == Field::Boxes => (name, Some(form.parse()?)),
            _ => (name, None),
        };
        self.0.insert(field, Mapped { name: name.to_owned(), form });
        Ok(())
    }
}

impl TryFrom<BTreeMap<String, String>> for Mapping {
    type Error = String;

    fn try_from(pairs: BTreeMap<String, String>) -> Result<Self, String> {
        let mut mapping = Self::default();
        pairs.iter().try_for_each(|(field, name)| mapping.set(field, name))?;
        Ok(mapping)
    }
}

impl From<Mapping> for BTreeMap<String, String> {
    fn from(mapping: Mapping) -> Self {
        let pair = |(field, Mapped { name, form }): (Field, Mapped)| {
            let form = form.map_or(String::new(), |form| format!(":{form}"));
            (field.name().to_owned(), name + &form)
        };
        mapping.0.into_iter().map(pair).collect()
    }
}

/// The names of the fields in one file.
#[derive(Debug)]
pub(super) struct Names {
    of: BTreeMap<Field, String>,
    /// How four bare numbers are meant, where a name or the user says so.
    pub(super) form: Option<BoxForm>,
    /// What is only kept as facts.
    pub(super) unused: Vec<String>,
    /// Those of them that look like one of our names.
    resembling: Vec<String>,
}

impl Names {
    /// Finds each field among the names `seen` in a file.
    pub(super) fn find(
        path: &Path,
        seen: &[String],
        mapping: &Mapping,
    ) -> Result<Self, DataSetError> {
        let fail = |what| DataSetError::Fields { path: path.to_owned(), what };
        let mut of = BTreeMap::new();
        let mut form = None;
        // Told together: whoever mends one finds the next at once.
        let mut complaints = Vec::new();
        for Known { field, sure, likely } in &KNOWN {
            if let Some(mapped) = mapping.0.get(field) {
                form = form.or(mapped.form);
                if !mapped.name.is_empty() {
                    let top = mapped.name.split('.').next().unwrap_or_default();
                    if !seen.iter().any(|name| *name == mapped.name || name == top) {
                        return Err(DataSetError::Map {
                            given: format!("{}={}", field.name(), mapped.name),
                            what: format!(
                                "no case has a field of this name; seen: {}",
                                listed(seen.iter().map(String::as_str))
                            ),
                        });
                    }
                    of.insert(*field, mapped.name.clone());
                }
            } else if let Some(name) = among(seen, sure).into_iter().next() {
                of.insert(*field, name.clone());
            } else {
                match among(seen, likely)[..] {
                    [] => {}
                    [name] => drop(of.insert(*field, name.clone())),
                    ref several => {
                        complaints.push(format!(
                            "the field {:?} could be {}; say which with --map {}=NAME",
                            field.name(),
                            listed(several.iter().map(|name| name.as_str())),
                            field.name()
                        ));
                        continue;
                    }
                }
            }
            if field.is_needed() && !of.contains_key(field) {
                complaints.push(format!(
                    "cannot find the field {:?} (nor {}); say which it is with --map {}=NAME",
                    field.name(),
                    [&sure[1..], likely].concat().join(", "),
                    field.name()
                ));
            }
        }
        if !complaints.is_empty() {
            let seen = listed(seen.iter().map(String::as_str));
            return Err(fail(format!("{}; seen: {seen}", complaints.join("; "))));
        }
        let form = form.or_else(|| of.get(&Field::Boxes).and_then(|name| BoxForm::of_name(name)));
        let used = |name: &&String| !of.values().any(|used| used.split('.').next() == Some(name));
        let unused = seen.iter().filter(used).filter(|name| !of.values().any(|used| used == *name));
        let unused: Vec<String> = unused.cloned().collect();
        let resembles = |name: &&String| KNOWN.iter().any(|known| is_slip(name, known.field));
        let resembling = unused.iter().filter(resembles).cloned().collect();
        Ok(Self { of, form, unused, resembling })
    }

    /// True where the file has this field.
    pub(super) fn has(&self, field: Field) -> bool {
        self.of.contains_key(&field)
    }

    /// The name of a field in the file.
    pub(super) fn name(&self, field: Field) -> &str {
        self.of.get(&field).map_or(field.name(), String::as_str)
    }

    /// The value of a field; absent and `null` are the same.
    pub(super) fn get<'a>(&self, field: Field, row: &'a Map<String, Value>) -> Option<&'a Value> {
        let name = self.of.get(&field)?;
        let value = row.get(name).or_else(|| {
            let mut parts = name.split('.');
            let first = row.get(parts.next()?)?;
            parts.try_fold(first, |value, part| value.get(part))
        });
        value.filter(|value| !value.is_null())
    }

    /// The unused names that look like one of ours.
    pub(super) fn resembling(&self) -> impl Iterator<Item = &str> {
        self.resembling.iter().map(String::as_str)
    }

    /// The field that an unused name is probably meant to be, if this row lacks it.
    pub(super) fn meant_by(&self, name: &str, row: &Map<String, Value>) -> Option<Field> {
        let lacking = |field: &Field| self.get(*field, row).is_none();
        KNOWN.iter().map(|known| known.field).filter(lacking).find(|field| is_slip(name, *field))
    }
}

/// Whether a name may be a slip of the pen for a field's.
fn is_slip(name: &str, field: Field) -> bool {
    let (written, right) = (plain(name), field.name());
    // Long names are no slips, and comparing them takes long.
    field < Field::Pictures
        && (3..=2 * right.len() + 4).contains(&written.len())
        && strsim::damerau_levenshtein(&written, right) <= if right.len() > 4 { 2 } else { 1 }
}

fn among<'a>(seen: &'a [String], names: &[&str]) -> Vec<&'a String> {
    names.iter().filter_map(|known| seen.iter().find(|name| plain(name) == plain(known))).collect()
}

/// A name without what people write differently.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(seen: &[&str], map: &[&str]) -> Result<Names, String> {
        let seen: Vec<String> = seen.iter().map(|name| (*name).to_owned()).collect();
        let mapping = Mapping::parse(map).map_err(|error| error.to_string())?;
        Names::find(Path::new("data.jsonl"), &seen, &mapping).map_err(|error| error.to_string())
    }

    #[test]
    fn aliases_are_found_and_our_own_names_win() {
        let names =
            find(&["image", "edit_operation", "prompt_clean", "Target Object", "bbox"], &[])
                .unwrap();
        assert_eq!(names.name(Field::Source), "image");
        assert_eq!(names.name(Field::Instruction), "edit_operation");
        assert_eq!(names.name(Field::Target), "Target Object");
        assert_eq!((names.name(Field::Boxes), names.form), ("bbox", None));
        assert_eq!(names.unused, ["prompt_clean"]);
        let names = find(&["image", "source", "instruction", "boxes"], &[]).unwrap();
        assert_eq!(names.name(Field::Source), "source");
        assert_eq!(names.form, Some(BoxForm::Corners));
    }

    #[test]
    fn a_complaint_names_the_field_and_what_was_seen() {
        let error = find(&["picture", "words", "category", "task"], &[]).unwrap_err();
        for part in [
            "\"source\"",
            "before",
            "\"instruction\"",
            "edit_operation",
            "\"words\"",
            "--map instruction=NAME",
            "\"type\" could be \"category\", \"task\"",
        ] {
            assert!(error.contains(part), "{error}");
        }
        let names = find(&["img", "prompt", "after"], &[]).unwrap();
        assert_eq!(names.name(Field::Instruction), "prompt");
        assert_eq!((names.name(Field::Source), names.name(Field::Edited)), ("img", "after"));
        let error = find(&["image", "instruction", "category", "task"], &[]).unwrap_err();
        assert!(error.contains("\"type\" could be \"category\", \"task\""), "{error}");
    }

    #[test]
    fn a_mapping_says_what_is_meant() {
        let map = ["instruction=what.text", "boxes=places:xywh", "type="];
        let names = find(&["image", "what", "places", "type"], &map).unwrap();
        assert_eq!(names.form, Some(BoxForm::Sized));
        assert!(!names.has(Field::Type));
        let row = serde_json::json!({"image": "a", "what": {"text": "do"}});
        assert_eq!(names.get(Field::Instruction, row.as_object().unwrap()).unwrap(), "do");
        for (map, hint) in [
            ("wat=x", "use one of id, source"),
            ("boxes=places:yxyx", "xyxy or xywh"),
            ("source=picture", "seen: \"image\""),
            ("none.toml", "TOML"),
        ] {
            let error = find(&["image", "instruction"], &[map]).unwrap_err();
            assert!(error.contains(hint), "{map}: {error}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map.toml");
        std::fs::write(&path, "instruction = \"say\"\n\"boxes\" = \"b:xyxy\"\n").unwrap();
        let names = find(&["image", "say", "b"], &[path.to_str().unwrap()]).unwrap();
        assert_eq!(names.name(Field::Instruction), "say");
    }

    #[test]
    fn likely_mistakes_are_recognised() {
        let names = find(&["source", "instruction", "boxs", "refrence", "note"], &[]).unwrap();
        let row = Map::new();
        assert_eq!(names.meant_by("boxs", &row), Some(Field::Boxes));
        assert_eq!(names.meant_by("refrence", &row), Some(Field::Reference));
        assert_eq!(names.meant_by("note", &row), None);
        assert_eq!(names.meant_by("prompt_clean", &row), None);
    }
}
