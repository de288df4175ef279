//! Programs that verify the data that they receive or write: a lower bound on the time of a verifying receiver.
//!
//! `verifying receive PORT COPY`: as `naive_tcp receive`, and digests all data while it is in the cache.
//! `verifying floor SIZE COPY`: as `floor`, and digests every piece before it writes it.
//! `verifying digest SIZE`: digests SIZE bytes from the cache; it waits for a line as `floor` does.
//!
//! Each prints as JSON the seconds that this took, from the first byte on.

use std::env;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;
use std::time::Instant;

use blake3::Hasher;

const PIECE: usize = 256 << 10;
/// The data of one UDP super-packet, as of `floor.c`.
const BURST: usize = 44 * 1456;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["receive", port, copy] => receive(port, copy),
        ["floor", size, copy] => File::create(copy).and_then(|copy| floor(size, copy)),
        ["digest", size] => floor(size, io::sink()),
        _ => Err(wrong("verifying receive PORT COPY, verifying floor SIZE COPY, or verifying digest SIZE")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("verifying: {error}");
            ExitCode::FAILURE
        }
    }
}

fn receive(port: &str, copy: &str) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, number(port)?))?;
    ready()?;
    let (mut connection, _) = listener.accept()?;
    let unfinished = format!("{copy}.part");
    let mut file = File::create(&unfinished)?;
    let mut piece = vec![0; PIECE];
    let (mut hasher, mut began) = (Hasher::new(), None);
    loop {
        let count = connection.read(&mut piece)?;
        if count == 0 {
            break;
        }
        began.get_or_insert_with(Instant::now);
        hasher.update(&piece[..count]);
        file.write_all(&piece[..count])?;
    }
    drop(file);
    fs::rename(unfinished, copy)?;
    print_received(began.unwrap_or_else(Instant::now), &hasher)?;
    connection.write_all(&[0])
}

fn floor(size: &str, mut copy: impl Write) -> io::Result<()> {
    let (mut left, piece) = (number::<usize>(size)?, vec![0; BURST]);
    let mut hasher = Hasher::new();
    ready()?;
    io::stdin().read_line(&mut String::new())?;
    let began = Instant::now();
    while left > 0 {
        let piece = &piece[..left.min(BURST)];
        hasher.update(piece);
        copy.write_all(piece)?;
        left -= piece.len();
    }
    print_received(began, &hasher)
}

fn ready() -> io::Result<()> {
    writeln!(io::stdout(), "ready")
}

fn print_received(began: Instant, hasher: &Hasher) -> io::Result<()> {
    let (seconds, digest) = (began.elapsed().as_secs_f64(), hasher.finalize());
    writeln!(io::stdout(), r#"{{"event": "received", "seconds": {seconds}, "digest": "{digest}"}}"#)
}

fn number<T: std::str::FromStr<Err: Display>>(text: &str) -> io::Result<T> {
    text.parse().map_err(|error| wrong(format!("{text:?} is not a number: {error}")))
}

fn wrong(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message.into())
}
