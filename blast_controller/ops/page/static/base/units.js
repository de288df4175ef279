/** Quantities with units, formatted as on the command line. */

const PREFIXES = ["", "k", "M", "G", "T"];

export function bytes(count) {
  return scaled(count, "B");
}

export function rate(bitsPerSecond) {
  return scaled(bitsPerSecond, "bit/s");
}

function scaled(value, unit) {
  let place = 0;
  while (value >= 999.5 && place < PREFIXES.length - 1) {
    value /= 1000;
    place += 1;
  }
  return `${value < 999.5 ? short(value) : value.toFixed(0)} ${PREFIXES[place]}${unit}`;
}

function short(value) {
  return String(Number(value.toPrecision(3)));
}

export function milliseconds(value) {
  return `${value < 100 ? value.toFixed(value < 10 ? 2 : 1) : value.toFixed(0)} ms`;
}

/** 4 s, 3 min 5 s, 2 h 4 min, 3 d 1 h. */
export function duration(seconds) {
  const whole = Math.max(Math.round(seconds), 0);
  if (whole < 60) return `${whole} s`;
  const [big, small, unit, rest] =
    whole < 3600 ? [60, 1, "min", "s"] : whole < 86400 ? [3600, 60, "h", "min"] : [86400, 3600, "d", "h"];
  return `${Math.floor(whole / big)} ${unit} ${Math.floor((whole % big) / small)} ${rest}`;
}

/** Format with the largest unit only: 4 s, 3 min, 2 h, 5 d. */
export function age(seconds) {
  const whole = Math.max(Math.floor(seconds), 0);
  const [size, unit] = whole < 60 ? [1, "s"] : whole < 3600 ? [60, "min"] : whole < 86400 ? [3600, "h"] : [86400, "d"];
  return `${Math.floor(whole / size)} ${unit}`;
}

export function count(number, name, several = `${name}s`) {
  return `${number} ${number === 1 ? name : several}`;
}

const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const DAY = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

/** Format a time of day, with its date unless it is today. `wall` is in seconds since 1970. */
export function timeOfDay(wall) {
  const date = new Date(wall * 1000);
  const time = TIME.format(date);
  return date.toDateString() === new Date().toDateString() ? time : `${DAY.format(date)}, ${time}`;
}
