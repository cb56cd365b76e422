//! Checks of output files: an output is neither an input nor another output.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use super::CliError;

/// Maximum number of symbolic links to follow towards a file that does not exist yet.
const LINKS_MAX: usize = 40;

/// A file that a command reads or writes, with its name in messages: `--events`, `the scenario`.
pub(super) struct RunFile<'a> {
    pub name: &'a str,
    pub path: &'a Path,
}

/// Checks that no output is an input or another output, even under another path. Nothing is written.
///
/// # Errors
/// With both names and the path.
pub(super) fn check_outputs(inputs: &[RunFile], outputs: &[RunFile]) -> Result<(), CliError> {
    for (nth, output) in outputs.iter().enumerate() {
        let others = inputs.iter().chain(&outputs[..nth]);
        for other in others {
            if is_same_file(output.path, other.path) {
                return Err(CliError::new(format!(
                    "{} cannot write to `{}`, which is {} as well",
                    output.name,
                    output.path.display(),
                    other.name,
                )));
            }
        }
    }
    Ok(())
}

/// The same for one output and these inputs.
///
/// # Errors
/// With both paths.
pub(super) fn check_output(output: &Path, inputs: &[&Path]) -> Result<(), CliError> {
    let input = |&path| RunFile {
        name: "the input",
        path,
    };
    let inputs: Vec<RunFile> = inputs.iter().map(input).collect();
    let output = RunFile {
        name: "the output",
        path: output,
    };
    check_outputs(&inputs, &[output])
}

/// Checks the extension of a page.
///
/// # Errors
/// With the name.
pub(super) fn check_page(path: &Path) -> Result<(), CliError> {
    let extension = path.extension();
    if extension.is_some_and(|extension| extension.eq_ignore_ascii_case("html")) {
        return Ok(());
    }
    Err(CliError::new(format!(
        "--report: expected a page FILE.html, found {}",
        path.display()
    )))
}

/// Opens an output, and returns its writer. The old content stays until [`truncate`] is called before the first write, so that nothing is
/// lost if the run does not start.
pub(super) fn open(path: &Path) -> Result<(File, BufWriter<File>), CliError> {
    let opened = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .and_then(|file| Ok((file.try_clone()?, BufWriter::new(file))));
    opened.map_err(|error| CliError::new(format!("could not create `{}`: {error}", path.display())))
}

/// Checks that a file can be written which is only created at the end, so that no run is wasted. No file is left behind; special files,
/// such as pipes, are not touched.
///
/// # Errors
/// With the path.
pub(super) fn check_writable(path: &Path) -> Result<(), CliError> {
    let found = fs::metadata(path);
    if found.is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Ok(());
    }
    let is_new = fs::symlink_metadata(path).is_err();
    open(path)?;
    if is_new {
        // If the empty file cannot be removed, the run continues.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

/// Empties [opened](open) files; special files, such as pipes, have no content.
pub(super) fn truncate(files: &[File]) -> Result<(), CliError> {
    let is_file = |file: &&File| file.metadata().is_ok_and(|found| found.is_file());
    files
        .iter()
        .filter(is_file)
        .try_for_each(|file| file.set_len(0))
        .map_err(|error| CliError::new(format!("could not empty an output: {error}")))
}

/// Whether two paths lead to the same file, even if it does not exist yet. Special files, such as `/dev/null`, never count as the same, so
/// they can be given more than once.
fn is_same_file(a: &Path, b: &Path) -> bool {
    let (a, b) = (real_path(a), real_path(b));
    let special = |path: &Path| fs::metadata(path).is_ok_and(|found| !found.is_file());
    (a == b && !special(&a)) || is_hard_link(&a, &b)
}

/// The file that a path leads to, through links, even if it does not exist yet.
fn real_path(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        if let Ok(real) = fs::canonicalize(&path) {
            return real;
        }
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = fs::canonicalize(folder.unwrap_or(Path::new(".")));
        let (Ok(folder), Some(name)) = (folder, path.file_name()) else {
            return path;
        };
        let there = folder.join(name);
        let Ok(target) = fs::read_link(&there) else {
            return there;
        };
        path = folder.join(target);
    }
    path
}

#[cfg(unix)]
fn is_hard_link(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of_file = |path| fs::metadata(path).ok().filter(fs::Metadata::is_file);
    let (a, b) = (of_file(a), of_file(b));
    a.zip(b)
        .is_some_and(|(a, b)| (a.dev(), a.ino()) == (b.dev(), b.ino()))
}

#[cfg(not(unix))]
fn is_hard_link(_: &Path, _: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &Path, outputs: &[&Path]) -> Result<(), CliError> {
        let outputs: Vec<RunFile> = outputs
            .iter()
            .map(|&path| RunFile {
                name: "--an-output",
                path,
            })
            .collect();
        let name = "the scenario";
        check_outputs(&[RunFile { name, path: input }], &outputs)
    }

    #[test]
    fn writable_file_is_unchanged_and_unwritable_one_reported() {
        let folder = std::env::temp_dir().join(format!("throng-writable-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (new, there) = (folder.join("new"), folder.join("there"));
        fs::write(&there, "kept").unwrap();
        assert!(check_writable(&new).is_ok() && !new.exists());
        assert!(check_writable(&there).is_ok());
        assert_eq!(fs::read_to_string(&there).unwrap(), "kept");
        assert!(check_writable(&folder.join("absent/new")).is_err());
        assert!(check_writable(&folder).is_err(), "a folder is no file");
        #[cfg(unix)]
        assert!(check_writable(Path::new("/dev/null")).is_ok());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn outputs_are_distinct_files_under_any_path() {
        let folder = std::env::temp_dir().join(format!("throng-outputs-{}", std::process::id()));
        fs::create_dir_all(folder.join("deeper")).unwrap();
        let in_folder = |name: &str| folder.join(name);
        let scenario = in_folder("my.ron");
        fs::write(&scenario, "").unwrap();
        let (new, same) = (in_folder("new"), in_folder("deeper/../new"));
        assert!(check(&scenario, &[&new, &in_folder("other")]).is_ok());
        assert!(check(&scenario, &[&in_folder("deeper/../my.ron")]).is_err());
        assert!(check(&scenario, &[&new, &same]).is_err());
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            let (soft, hard, dangling) = (in_folder("soft"), in_folder("hard"), in_folder("far"));
            symlink("my.ron", &soft).unwrap();
            fs::hard_link(&scenario, &hard).unwrap();
            symlink("new", &dangling).unwrap();
            assert!(check(&scenario, &[&soft]).is_err());
            assert!(check(&scenario, &[&hard]).is_err());
            assert!(check(&scenario, &[&new, &dangling]).is_err());
            symlink("round", in_folder("round")).unwrap();
            assert!(check(&scenario, &[&in_folder("round")]).is_ok());
            let null = Path::new("/dev/null");
            assert!(check(&scenario, &[null, null]).is_ok());
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
