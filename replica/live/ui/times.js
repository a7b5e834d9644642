// Timestamps: WALL.COUNTER.SITE, with the wall clock as 14 hexadecimal digits of microseconds since 1970.

const NONE = "00000000000000.0000.0";

/** Whether it stands for "not yet". */
export function isNone(timestamp) {
  return timestamp === NONE;
}

/** The time in a timestamp for people, in UTC: with the day where it is not today. */
export function timeOf(timestamp) {
  if (isNone(timestamp)) return "none yet";
  const date = new Date(parseInt(timestamp.slice(0, 14), 16) / 1000);
  if (Number.isNaN(date.getTime())) return timestamp;
  const [day, time] = date.toISOString().split("T");
  const today = new Date().toISOString().slice(0, 10);
  return `${day === today ? "" : `${day} `}${time.slice(0, 12)}`;
}

/** The time now, for people. */
export function timeNow() {
  return new Date().toISOString().slice(11, 19);
}
