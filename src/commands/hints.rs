//! What a person can type where a run was refused: the library's errors name no options.

use anyhow::anyhow;

use crate::judge::JudgeError;
use crate::protocol::ProtocolError;
use crate::report::ReportError;
use crate::run::{RunError, SetupError};

/// The error of a judgement with the options that help.
pub(super) fn of_judgement(error: JudgeError) -> anyhow::Error {
    match &error {
        JudgeError::Protocol(ProtocolError::NoPlace { .. }) => {
            anyhow!("{error} (--box x1,y1,x2,y2; --mode)")
        }
        JudgeError::NoSuchMode { .. } => anyhow!("{error} (--mode)"),
        _ => error.into(),
    }
}

/// The error of a report with the options that help.
pub(super) fn of_report(error: ReportError) -> anyhow::Error {
    match &error {
        ReportError::Line { .. } => anyhow!("{error} (packs: --prompts)"),
        _ => error.into(),
    }
}

/// The error of a run with the options that help.
pub(super) fn told(error: RunError) -> anyhow::Error {
    let hint = match &error {
        RunError::NoPrice { .. } => "; tell it with --prices FILE, or limit with --max-calls",
        RunError::Broken { .. } => "; mend them, or judge the rest with --allow-partial",
        RunError::NoEdits { .. } => "; say where they are with --edits DIR",
        RunError::NoBoxes { .. } => {
            "; choose another --mode, or judge the rest with --allow-partial"
        }
        RunError::OtherSettings { .. } => {
            "\njudge into a folder of its own with --new-run, or go on all the same with --mix"
        }
        RunError::OldRun { .. } => {
            ", which report, view, run status and run merge still read; judge into a folder of its own with --new-run"
        }
        RunError::OtherPart { .. } => {
            "; give each part its own --run, or judge both into one with --mix"
        }
        RunError::NotARun { .. } => "; name another folder with --run",
        RunError::NoRecord { .. } => "; name another folder with --run, or take them in with --mix",
        RunError::IntoItself { .. } => ": name it with --run",
        RunError::Changed { .. } => "; judge them again with --redo-changed, or name another --run",
        RunError::OtherParts { .. } => "\nmerge them all the same with --mix",
        RunError::Overlapping { .. } => {
            "\ntake those of the part that is named first with --keep-first"
        }
        RunError::NotInThisMode { modes, .. } => {
            return anyhow!("{error}; choose with --mode {modes}");
        }
        RunError::OtherDialect { dialect, .. } => {
            return anyhow!("{error}; ask with --dialect {dialect}");
        }
        RunError::Setup(SetupError::NobodyToAsk) => " (--base-url, --profile, --param; --model)",
        _ => return error.into(),
    };
    anyhow!("{error}{hint}")
}
