//! What an answer rests on, by the names that the judge gives.

/// At most this many crops are read from a range ("crops 1-3").
const WIDEST_RANGE: u32 = 50;
/// A longer name is cut.
const LONGEST_NAME: usize = 80;

/// The names in `<Evidence>`. A crop is named "Crop N"; any other name stays as it was written,
/// whether it exists or not.
pub(super) fn listed(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut after_crop = false;
    let text = text.replace(" and ", ",").replace('&', ",");
    for item in text.split([',', ';', '\n', '|']) {
        let item = item.trim_matches(|c: char| !c.is_alphanumeric());
        let crops = crops(item);
        if !crops.is_empty() {
            after_crop = true;
            names.extend(crops);
        } else if after_crop && !item.is_empty() && item.bytes().all(|b| b.is_ascii_digit()) {
            names.push(format!("Crop {item}"));
        } else if !item.is_empty()
            && !["none", "n/a", "nothing"].contains(&item.to_lowercase().as_str())
        {
            after_crop = false;
            names.push(item.chars().take(LONGEST_NAME).collect());
        }
    }
    unique(names)
}

/// The crops that a text mentions: "Crop 2", "crop #2", "crops 1, 2 and 4", "crops 1-3".
pub(super) fn mentioned(text: &str) -> Vec<String> {
    unique(crops(text))
}

fn crops(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let lower = text.to_ascii_lowercase();
    for (at, word) in lower.match_indices("crop") {
        if lower[..at].ends_with(char::is_alphanumeric) {
            continue;
        }
        let rest = &lower[at + word.len()..];
        let (rest, plural) = rest.strip_prefix('s').map_or((rest, false), |rest| (rest, true));
        let number = rest.trim_start_matches([' ', '_', '-', '#', '\u{a0}', '*', '\n']);
        let Some((mut last, mut rest)) = leading_number(number) else { continue };
        names.push(format!("Crop {last}"));
        if !plural {
            continue;
        }
        loop {
            let after = rest.trim_start();
            let sign = [", and", ", ", ",", "and", "&", "-", "–", "to"]
                .iter()
                .find_map(|sign| after.strip_prefix(sign).map(|after| (*sign, after)));
            let Some((sign, after)) = sign else { break };
            let Some((next, after)) = leading_number(after.trim_start()) else { break };
            if let (Ok(from), Ok(to)) = (last.parse::<u32>(), next.parse::<u32>())
                && ["-", "–", "to"].contains(&sign)
                && to.saturating_sub(from) <= WIDEST_RANGE
            {
                names.extend((from.saturating_add(1)..to).map(|n| format!("Crop {n}")));
            }
            names.push(format!("Crop {next}"));
            (last, rest) = (next, after);
        }
    }
    names
}

/// A whole number at the beginning that is not part of something longer ("3x", "2.5").
fn leading_number(text: &str) -> Option<(&str, &str)> {
    let (number, rest) =
        text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let decimal =
        rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let whole =
        (1..=6).contains(&number.len()) && !decimal && !rest.starts_with(char::is_alphanumeric);
    whole.then_some((number, rest))
}

fn unique(names: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    names.into_iter().filter(|name| seen.insert(name.clone())).collect()
}
