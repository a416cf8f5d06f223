use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::dataset::{DataSetError, Mapping, MatchBy};
use crate::run::DataSpec;

#[derive(Debug, Subcommand)]
pub(crate) enum DatasetCommand {
    /// Draw a small benchmark whose right answers are known.
    #[command(after_help = "\
Example:
  deeplook dataset make --out scenes/ --cases 28 --seed 7

The folder gets cases.jsonl, labels.jsonl, and the pictures. Same seed, same bytes.")]
    Make {
        /// The folder to write; it must be new or empty.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// How many cases; seven or more cover every type of instruction.
        #[arg(long, value_name = "N", default_value_t = 14)]
        cases: usize,
        /// In which benchmark's layout.
        #[arg(long, value_name = "NAME", default_value = "dlebench", value_parser = super::words::benchmark())]
        benchmark: String,
        /// Another seed draws other scenes.
        #[arg(long, value_name = "S", default_value_t = 1)]
        seed: u64,
    },
    /// Read a data set and all its pictures, and tell everything that is wrong with it.
    #[command(after_help = "\
Examples:
  deeplook dataset check scenes/
  deeplook dataset check my-cases.csv --edits outputs/
  deeplook dataset check DLEBench/ --edits outputs/ --map boxes=bbox:xywh

An error means that a case cannot be judged; a warning, that it may not be what you meant.
Exit code 0: no errors; 1: errors (with --strict also warnings); 2: it cannot be read at all.")]
    Check {
        #[command(flatten)]
        data: DataSetArgs,
        /// Take warnings as seriously as errors.
        #[arg(long)]
        strict: bool,
        /// Print one JSON object on stdout.
        #[arg(long)]
        json: bool,
    },
    /// Show what a data set consists of: types, targets and their sizes, pictures, editors.
    #[command(after_help = "\
Examples:
  deeplook dataset stats scenes/
  deeplook dataset stats DLEBench/ --edits outputs/ --out stats.html")]
    Stats {
        #[command(flatten)]
        data: DataSetArgs,
        /// Also draw it, into an .svg or .html file.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Print one JSON object on stdout.
        #[arg(long)]
        json: bool,
    },
    /// Write a data set of others in our own form: cases, and what people and judges said of them.
    #[command(after_help = "\
Examples:
  deeplook dataset convert ImagenHub/ --preset imagenhub --out imagenhub/
  deeplook dataset convert edit.json --root images/ --out mmrb2/ --in-place

The folder gets cases.jsonl, and where the set has them labels.jsonl, votes.jsonl and judges/NAME.jsonl (the answers of
recorded judges, as results). Pictures are linked or copied to pictures/; with --in-place they stay where they are, and the
cases are read with --root SRC. Exit code 1: something could not be taken along, and is named.")]
    Convert {
        /// The file or folder to read.
        #[arg(value_name = "SRC")]
        src: PathBuf,
        #[command(flatten)]
        reading: ReadingOptions,
        /// The folder to write; it must be new or empty.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Leave pictures where they are.
        #[arg(long)]
        in_place: bool,
        /// Print one JSON object on stdout.
        #[arg(long)]
        json: bool,
    },
    /// List the data sets of others whose layout is known.
    Presets {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// Which data set, and how it is to be read.
#[derive(Debug, Clone, Args)]
pub(crate) struct DataSetArgs {
    /// A file of cases (.jsonl or .csv), or the folder that holds one.
    pub dataset: PathBuf,
    #[command(flatten)]
    pub reading: ReadingOptions,
}

/// How a data set is to be read.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReadingOptions {
    /// The outputs of one editor, or a folder of such folders, named by id or by source picture, or a
    /// pattern of their names such as 'out/{editor}/{id}_*.png'; they replace what the data set names itself.
    #[arg(long, value_name = "DIR|PATTERN")]
    pub edits: Option<PathBuf>,
    /// By what the outputs are named [default: either, where only one fits].
    #[arg(long = "match", value_name = "BY", requires = "edits", value_parser = super::words::match_by())]
    pub match_by: Option<MatchBy>,
    /// What a field is called in this data set, e.g. instruction=text or boxes=bbox:xywh, or a TOML
    /// file of such lines; can be given several times.
    #[arg(long, value_name = "FIELD=NAME|FILE")]
    pub map: Vec<String>,
    /// The data set is laid out as this one; `deeplook dataset presets` lists them [default: recognised,
    /// where it is unmistakable].
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Another folder that paths in the data set may start from, besides its own; absolute paths below it
    /// are allowed, too. Can be given several times.
    #[arg(long = "root", value_name = "DIR")]
    pub roots: Vec<PathBuf>,
}

impl ReadingOptions {
    /// The data set at `path`, read so.
    pub(crate) fn data(&self, path: Option<&Path>) -> Result<DataSpec, DataSetError> {
        Ok(DataSpec {
            path: path.map(Path::to_owned),
            edits: self.edits.clone(),
            match_by: self.match_by,
            map: Mapping::parse(&self.map)?,
            roots: self.roots.clone(),
            preset: self.preset.clone(),
            ..DataSpec::default()
        })
    }
}
