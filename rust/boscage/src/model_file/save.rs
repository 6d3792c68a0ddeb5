//! Writes a file completely or not at all, and removes what interrupted saves have left.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A part file is created a moment before it is locked, so a file younger than this may belong to another
/// writer.
const YOUNG: Duration = Duration::from_secs(60);

/// Writes a part file (`NAME.PROCESS.part`) in the same folder, and renames it when it is complete. A full
/// disk or a crash leaves an existing file unchanged. Part files of writers that were killed are removed.
///
/// A link stays a link: the file that it leads to is replaced. The new file has the permissions of the old one. What
/// is neither a file nor a folder, such as a pipe or a device, is written to as it is.
pub(super) fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = fs::canonicalize(path);
    let path = target.as_deref().unwrap_or(path);
    let old = fs::metadata(path).ok();
    if old.as_ref().is_some_and(|old| !old.is_file() && !old.is_dir()) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let name =
        path.file_name().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "not the name of a file"))?;
    sweep(path, name);
    let (part, mut file) = create(path, name)?;
    let permitted = old.map_or(Ok(()), |old| file.set_permissions(old.permissions()));
    let written = permitted
        .and_then(|()| file.write_all(bytes))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // The first error is reported.
        let _ = fs::remove_file(&part);
    }
    written
}

/// Creates a part file and locks it while it is open. Other threads, or processes in other containers, may
/// use the first names.
fn create(path: &Path, name: &OsStr) -> io::Result<(PathBuf, File)> {
    let process = std::process::id();
    let mut ending = format!(".{process}.part");
    for i in 1.. {
        let part = path.with_file_name(with_ending(name, &ending));
        match OpenOptions::new().write(true).create_new(true).open(&part) {
            Ok(file) => {
                // Where files cannot be locked, no part files are removed.
                let _ = file.try_lock();
                return Ok((part, file));
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => ending = format!(".{process}-{i}.part"),
            Err(error) => return Err(error),
        }
    }
    unreachable!("there are more numbers than files")
}

fn with_ending(name: &OsStr, ending: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(ending);
    name
}

/// Removes part files of a file whose writers have ended. A writer holds the lock of its part file until it
/// ends, in any process or container, and the operating system releases the locks of killed processes. Files
/// that cannot be listed, opened or locked are kept.
fn sweep(path: &Path, name: &OsStr) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if is_part(&entry.file_name(), name) && is_old(&entry) {
            let part = entry.path();
            if File::open(&part).is_ok_and(|file| {
                !matches!(file.try_lock(), Err(TryLockError::WouldBlock | TryLockError::Error(_)))
            }) {
                let _ = fs::remove_file(&part);
            }
        }
    }
}

/// Whether a file's name is `NAME.PROCESS.part` or `NAME.PROCESS-NUMBER.part`.
fn is_part(found: &OsStr, name: &OsStr) -> bool {
    let process = found
        .as_encoded_bytes()
        .strip_prefix(name.as_encoded_bytes())
        .and_then(|rest| rest.strip_prefix(b"."))
        .and_then(|rest| rest.strip_suffix(b".part"));
    process.is_some_and(|process| {
        process.first().is_some_and(u8::is_ascii_digit)
            && process.iter().all(|&byte| byte.is_ascii_digit() || byte == b'-')
    })
}

fn is_old(entry: &fs::DirEntry) -> bool {
    let age =
        entry.metadata().and_then(|metadata| metadata.modified()).map(|at| at.elapsed().unwrap_or_default());
    age.is_ok_and(|age| age > YOUNG)
}
