//! What a detector is asked, as the tokens that its text encoder takes.

use std::path::Path;

use tokenizers::decoders::wordpiece::WordPiece as WordPieceDecoder;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::processors::bert::BertProcessing;
use tokenizers::{DecoderWrapper, Tokenizer};

use super::DetectorError;
use crate::files;
use crate::scene::quoted;
use crate::tool::ToolError;

/// The ids that end a phrase: [CLS], [SEP], full stop and question mark of bert-base-uncased.
const DELIMITERS: [u32; 4] = [101, 102, 1012, 1029];
/// Every token has a column in the model's logits, and there are this many.
pub(super) const MOST_TOKENS: usize = 256;
/// Longer names are refused before they are tokenised: no object has such a name.
const LONGEST_NAME: usize = 1000;

/// A tokenizer, without the padding and truncation that its file may ask for.
#[derive(Debug)]
pub(super) struct Vocabulary {
    tokenizer: Tokenizer,
    /// Ids that only the tokenizer itself may write.
    special: Vec<u32>,
}

/// An object's name as tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caption {
    pub(super) ids: Vec<u32>,
}

impl Caption {
    /// The tokens, with `[CLS]` and `[SEP]`.
    pub fn ids(&self) -> &[u32] {
        &self.ids
    }
}

impl Vocabulary {
    /// Reads `tokenizer.json`, or `vocab.txt` with one token a line.
    pub(super) fn load(path: &Path) -> Result<Self, DetectorError> {
        let unusable = |error: &dyn std::fmt::Display| DetectorError::Tokenizer {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let bytes = files::read_small(path).map_err(|e| unusable(&e))?;
        let mut tokenizer = if path.extension().is_some_and(|extension| extension == "json") {
            // Not `from_bytes`: that would be compiled here, all of it, and take minutes.
            let text = std::str::from_utf8(&bytes).map_err(|e| unusable(&e))?;
            text.parse().map_err(|e: tokenizers::Error| unusable(&e))?
        } else {
            from_vocabulary(&bytes).map_err(|e| unusable(&e))?
        };
        tokenizer.with_padding(None).with_truncation(None).map_err(|e| unusable(&e))?;
        let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
        let special: Vec<u32> = special.iter().filter_map(|t| tokenizer.token_to_id(t)).collect();
        let vocabulary = Self { tokenizer, special };
        // The masks and the model itself know these ids by number.
        match vocabulary.encode("a.") {
            Ok(ids) if ids.first() == Some(&101) && ids.ends_with(&[1012, 102]) => Ok(vocabulary),
            Ok(ids) => Err(unusable(&format!(
                "it gives {ids:?} for \"a.\", where bert-base-uncased has 101 … 1012, 102"
            ))),
            Err(error) => Err(unusable(&error)),
        }
    }

    fn encode(&self, text: &str) -> tokenizers::Result<Vec<u32>> {
        Ok(self.tokenizer.encode(text, true)?.get_ids().to_vec())
    }

    /// The tokens for a name: lower-case, trimmed, with a full stop behind.
    pub(super) fn caption(&self, name: &str) -> Result<Caption, ToolError> {
        let name = name.trim();
        if name.chars().all(|c| !c.is_alphanumeric()) {
            return Err(ToolError::refused(
                "detect_object_name is empty; name the object, e.g. \"yellow bicycle\"",
            ));
        }
        let too_long = |length: String| {
            ToolError::refused(format!(
                "detect_object_name is too long ({length}); name the object in a few words"
            ))
        };
        if name.chars().count() > LONGEST_NAME {
            return Err(too_long(format!("{} characters", name.chars().count())));
        }
        let mut text = name.to_lowercase();
        if !text.ends_with('.') {
            text.push('.');
        }
        let ids = self.encode(&text).map_err(|error| {
            ToolError::refused(format!("{} cannot be tokenised: {error}", quoted(name)))
        })?;
        if ids.len() > MOST_TOKENS {
            return Err(too_long(format!("{} tokens, at most {MOST_TOKENS}", ids.len())));
        }
        let inner = ids.get(1..ids.len().saturating_sub(1)).unwrap_or_default();
        // An unknown word is only unknown; the other special tokens would forge the text's structure.
        let unknown = self.tokenizer.token_to_id("[UNK]");
        if inner.iter().any(|id| Some(*id) != unknown && self.special.contains(id)) {
            return Err(ToolError::refused(format!(
                "{} contains a token that is not text; name the object in plain words",
                quoted(name)
            )));
        }
        Ok(Caption { ids })
    }

    /// The words of the caption whose tokens a box fits with more than `threshold`.
    pub(super) fn phrase(&self, caption: &Caption, fits: &[f32], threshold: f32) -> String {
        // As in the references: neither the first token nor the last possible column counts.
        let tokens = caption.ids.iter().zip(fits).enumerate();
        let tokens =
            tokens.filter(|(at, (_, fit))| *at != 0 && *at != MOST_TOKENS - 1 && **fit > threshold);
        let tokens: Vec<u32> = tokens.map(|(_, (id, _))| *id).collect();
        self.tokenizer.decode(&tokens, false).unwrap_or_default()
    }
}

/// What BERT's own tokenizer does with a bare vocabulary.
fn from_vocabulary(bytes: &[u8]) -> tokenizers::Result<Tokenizer> {
    let words = WordPiece::read_bytes(bytes)?;
    let id =
        |token: &str| words.get(token).copied().ok_or_else(|| format!("it has no {token} in it"));
    let (sep, cls) = (id("[SEP]")?, id("[CLS]")?);
    let model = WordPiece::builder().vocab(words).unk_token("[UNK]".to_owned()).build()?;
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_normalizer(Some(BertNormalizer::default()))?;
    tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
    tokenizer.with_post_processor(Some(BertProcessing::new(
        ("[SEP]".to_owned(), sep),
        ("[CLS]".to_owned(), cls),
    )));
    let decoder = WordPieceDecoder::new("##".to_owned(), true);
    tokenizer.with_decoder(Some(DecoderWrapper::WordPiece(decoder)));
    Ok(tokenizer)
}

/// Which tokens see each other, and each token's place in its phrase, for models that are told.
///
/// A phrase sees itself and its delimiter; everything else sees only itself.
pub(super) fn phrase_masks(ids: &[u32]) -> (Vec<bool>, Vec<i64>) {
    let length = ids.len();
    let mut sees = vec![false; length * length];
    let mut places = vec![0; length];
    (0..length).for_each(|at| sees[at * length + at] = true);
    let mut previous = 0;
    for at in (0..length).filter(|&at| DELIMITERS.contains(&ids[at])) {
        if at != 0 && at != length - 1 {
            let phrase = previous + 1..at + 1;
            for row in phrase.clone() {
                sees[row * length..][phrase.clone()].fill(true);
                places[row] = (row - phrase.start) as i64;
            }
        }
        previous = at;
    }
    (sees, places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_sees_itself_and_counts_from_nought() {
        // "the running dog ."
        let (sees, places) = phrase_masks(&[101, 1996, 2770, 3899, 1012, 102]);
        assert_eq!(places, [0, 0, 1, 2, 3, 0]);
        let rows: Vec<String> = sees
            .chunks(6)
            .map(|row| row.iter().map(|&b| if b { '1' } else { '0' }).collect())
            .collect();
        assert_eq!(rows, ["100000", "011110", "011110", "011110", "011110", "000001"]);
    }

    #[test]
    fn phrases_do_not_see_each_other() {
        // "cat . dog ?"
        let (sees, places) = phrase_masks(&[101, 4937, 1012, 3899, 1029, 102]);
        assert_eq!(places, [0, 0, 1, 0, 1, 0]);
        assert!(sees[6 + 2] && !sees[6 + 3] && sees[3 * 6 + 4]);
    }
}
