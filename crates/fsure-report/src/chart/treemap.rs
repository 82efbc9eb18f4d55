//! Folders as areas, each divided by what was found in it. The same input gives the same
//! picture: what is equally large stands in the order of names.

use std::collections::BTreeMap;

use super::Chart;
use super::svg::{CHARACTER, Canvas, WIDTH, clipped};

const HEIGHT: f64 = 300.0;
/// Room below for the legend.
const LEGEND: f64 = 30.0;
/// Folders that are drawn by themselves; the others are one area.
const FOLDERS_MAX: usize = 40;
/// Folders that are enough to stop looking into them.
const FOLDERS_MIN: usize = 8;
/// Depth to which folders are told apart.
const DEPTH_MAX: usize = 4;

/// A file, or whatever takes its share of the area.
#[derive(Clone, Debug)]
pub struct TreemapItem {
    /// Path, with `/` between its parts.
    pub path: String,
    /// Share of the area.
    pub weight: u64,
    /// Place of its class in the list of classes.
    pub class: usize,
}

/// A class of items: its name, and its style.
#[derive(Clone, Copy, Debug)]
pub struct TreemapClass {
    /// Name in the legend.
    pub name: &'static str,
    /// Style of the area.
    pub style: &'static str,
}

/// An area on the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// The weight of each class in a folder.
type Weights = Vec<u64>;

/// Folders as areas. `words` gives a weight in words.
pub fn treemap(
    title: &str,
    items: &[TreemapItem],
    classes: &[TreemapClass],
    words: &dyn Fn(u64) -> String,
) -> Chart {
    let folders = folders(items, classes.len());
    let weights: Vec<_> = folders.iter().map(|(_, weights)| total(weights)).collect();
    let paper = Area { x: 0.0, y: 0.0, width: WIDTH, height: HEIGHT };
    let mut canvas = Canvas::default();
    for ((name, weights), area) in folders.iter().zip(areas(&weights, paper)) {
        folder(&mut canvas, (name, weights), area, classes);
    }
    legend(&mut canvas, &folders, classes, words);
    let rows = folders.iter().map(|(name, weights)| {
        let name = if name.is_empty() { "(top)" } else { name };
        format!("{name}: {}", in_words(weights, classes, words))
    });
    Chart {
        title: title.to_owned(),
        description: format!("{}.", rows.collect::<Vec<_>>().join("; ")),
        width: WIDTH,
        height: HEIGHT + LEGEND,
        body: canvas.body,
    }
}

fn in_words(weights: &[u64], classes: &[TreemapClass], words: &dyn Fn(u64) -> String) -> String {
    let parts = weights.iter().zip(classes).filter(|(weight, _)| **weight > 0);
    let parts = parts.map(|(weight, class)| format!("{} {}", words(*weight), class.name));
    parts.collect::<Vec<_>>().join(", ")
}

/// The folders with their weights, the largest first: of the lowest depth at which there are
/// several, and of all small ones the sum.
fn folders(items: &[TreemapItem], classes: usize) -> Vec<(String, Weights)> {
    let mut best = BTreeMap::new();
    for depth in 1..=DEPTH_MAX {
        let found = at_depth(items, classes, depth);
        if depth > 1 && found.len() > FOLDERS_MAX {
            break;
        }
        best = found;
        if best.len() >= FOLDERS_MIN {
            break;
        }
    }
    let mut folders: Vec<_> = best.into_iter().collect();
    folders.sort_by_key(|(_, weights)| std::cmp::Reverse(total(weights)));
    if folders.len() > FOLDERS_MAX {
        let others = folders.split_off(FOLDERS_MAX - 1);
        let mut sum = vec![0; classes];
        for (_, weights) in &others {
            add(&mut sum, weights);
        }
        folders.push((format!("{} other folders", others.len()), sum));
    }
    folders
}

fn at_depth(items: &[TreemapItem], classes: usize, depth: usize) -> BTreeMap<String, Weights> {
    let mut folders: BTreeMap<String, Weights> = BTreeMap::new();
    for item in items {
        let above = item.path.rsplit_once('/').map_or("", |(above, _)| above);
        let folder: Vec<_> = above.split('/').take(depth).collect();
        let weights = folders.entry(folder.join("/")).or_insert_with(|| vec![0; classes]);
        if let Some(weight) = weights.get_mut(item.class) {
            // What takes no room is there all the same.
            *weight = weight.saturating_add(item.weight.max(1));
        }
    }
    folders
}

fn total(weights: &[u64]) -> u64 {
    weights.iter().fold(0, |sum, weight| sum.saturating_add(*weight))
}

fn add(sum: &mut [u64], more: &[u64]) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
}

/// Areas in the order of the weights, as square as can be: rows are filled along the shorter
/// side as long as that makes the worst of them more square.
fn areas(weights: &[u64], mut free: Area) -> Vec<Area> {
    let mut all = Vec::new();
    let mut left: f64 = weights.iter().map(|weight| *weight as f64).sum();
    let mut rest = weights;
    while !rest.is_empty() && left > 0.0 {
        let scale = free.width * free.height / left;
        let side = free.width.min(free.height);
        let sizes: Vec<_> = rest.iter().map(|weight| *weight as f64 * scale).collect();
        let mut count = 1;
        while count < sizes.len() && worst(&sizes[..=count], side) <= worst(&sizes[..count], side) {
            count += 1;
        }
        all.extend(row(&sizes[..count], &mut free));
        left -= rest[..count].iter().map(|weight| *weight as f64).sum::<f64>();
        rest = &rest[count..];
    }
    all
}

/// The worst ratio of sides in a row along a side.
fn worst(sizes: &[f64], side: f64) -> f64 {
    let sum: f64 = sizes.iter().sum();
    let thickness = sum / side;
    sizes.iter().fold(0.0, |worst, size| {
        let length = size / thickness;
        f64::max(worst, f64::max(length / thickness, thickness / length))
    })
}

fn row(sizes: &[f64], free: &mut Area) -> Vec<Area> {
    let sum: f64 = sizes.iter().sum();
    let is_wide = free.width >= free.height;
    let side = if is_wide { free.height } else { free.width };
    let thickness = if side > 0.0 { sum / side } else { 0.0 };
    let mut at = 0.0;
    let areas = sizes.iter().map(|size| {
        let length = if thickness > 0.0 { size / thickness } else { 0.0 };
        let area = match is_wide {
            true => Area { x: free.x, y: free.y + at, width: thickness, height: length },
            false => Area { x: free.x + at, y: free.y, width: length, height: thickness },
        };
        at += length;
        area
    });
    let areas = areas.collect();
    if is_wide {
        free.x += thickness;
        free.width = (free.width - thickness).max(0.0);
    } else {
        free.y += thickness;
        free.height = (free.height - thickness).max(0.0);
    }
    areas
}

/// Draws a folder: stripes for the classes in it, its name on top.
fn folder(
    canvas: &mut Canvas,
    (name, weights): (&str, &[u64]),
    area: Area,
    classes: &[TreemapClass],
) {
    let (width, height) = ((area.width - 2.0).max(0.5), (area.height - 2.0).max(0.5));
    let sum: f64 = weights.iter().map(|weight| *weight as f64).sum();
    let mut at = area.y + 1.0;
    for (weight, class) in weights.iter().zip(classes).filter(|(weight, _)| **weight > 0) {
        let part = height * *weight as f64 / sum;
        canvas.rect(&format!("tile {}", class.style), (area.x + 1.0, at), (width, part));
        at += part;
    }
    let room = ((width - 8.0) / CHARACTER) as usize;
    if height >= 18.0 && room >= 4 {
        let name = clipped(if name.is_empty() { "(top)" } else { name }, room);
        canvas.label((area.x + 5.0, area.y + 14.0), &name);
    }
}

fn legend(
    canvas: &mut Canvas,
    folders: &[(String, Weights)],
    classes: &[TreemapClass],
    words: &dyn Fn(u64) -> String,
) {
    let mut sum = vec![0; classes.len()];
    folders.iter().for_each(|(_, weights)| add(&mut sum, weights));
    let mut x = 2.0;
    for (weight, class) in sum.iter().zip(classes).filter(|(weight, _)| **weight > 0) {
        let y = HEIGHT + 10.0;
        canvas.rect(&format!("tile {}", class.style), (x, y), (12.0, 12.0));
        let text = format!("{}: {}", class.name, words(*weight));
        canvas.text(x + 18.0, y + 10.0, "soft", &text);
        x += 18.0 + text.chars().count() as f64 * CHARACTER + 18.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSES: [TreemapClass; 2] = [
        TreemapClass { name: "bad", style: "bad" },
        TreemapClass { name: "plain", style: "plain" },
    ];

    fn item(path: &str, weight: u64, class: usize) -> TreemapItem {
        TreemapItem { path: path.to_owned(), weight, class }
    }

    #[test]
    fn areas_fill_the_paper_in_proportion() {
        let weights = [6, 6, 4, 3, 2, 2, 1];
        let paper = Area { x: 0.0, y: 0.0, width: 600.0, height: 400.0 };
        let areas = areas(&weights, paper);
        for (area, weight) in areas.iter().zip(weights) {
            let share = area.width * area.height / (600.0 * 400.0);
            assert!((share - weight as f64 / 24.0).abs() < 1e-9, "{area:?}");
            assert!(area.x + area.width <= 600.1 && area.y + area.height <= 400.1);
        }
    }

    #[test]
    fn the_same_items_in_any_order_give_the_same_picture() {
        let mut items: Vec<_> =
            (0..200).map(|n| item(&format!("f{}/x{n}", n % 60), 1 + n % 5, 0)).collect();
        let one = treemap("t", &items, &CLASSES, &|n| n.to_string());
        items.reverse();
        assert_eq!(one, treemap("t", &items, &CLASSES, &|n| n.to_string()));
        assert!(one.description.contains("21 other folders"), "{}", one.description);
    }

    #[test]
    fn a_single_folder_is_looked_into() {
        let items = [item("a/b/x", 1, 0), item("a/c/y", 1, 1), item("a/z", 0, 1)];
        let chart = treemap("t", &items, &CLASSES, &|n| n.to_string());
        assert_eq!(chart.description, "a: 1 plain; a/b: 1 bad; a/c: 1 plain.");
    }
}
