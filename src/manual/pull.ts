/** Manual, topic `pull`: the client that comes with the appliance (contract: Client procedures, Retry). */
import { fenced, page, paragraph, points } from './text.ts';

export function pullText(): string {
  return page(
    'PULL',
    paragraph(`
      The command pull copies detections from a Detection Reporting API, this appliance's or another's, into a file, and
      goes on where it stopped. Its source is an example of a client that keeps to the rules: src/pull.`),
    fenced('sh', 'wirewatch pull --base-url http://127.0.0.1:8080 --key-file key --into copy.db --full'),
    '1. What it copies',
    points(
      'With --full the whole history: month by month back to data_starts, one stream after the other, then the change stream from the as_of of the first page on. What changes meanwhile comes with the stream.',
      "Without it, changes from --since on, at most 31 days ago; by default from now, by the server's clock.",
      'A file that was begun before is carried on; then neither --full nor --since is needed. With --follow it goes on until it is stopped, and asks again every --poll-seconds when nothing is new.',
      'With --subscription and --content-type only what is named. The copy notes them: it goes on with the same ones, named again or not, and refuses others.',
      'One copy has at most 20 streams, one for each subscription and content type. A key that reads more takes one copy for each group of them: the command says so before it reads anything.',
      'The change stream reaches back 31 days: a full copy that was broken off and is carried on later than that begins anew, and says so. What was read stays; with --format ndjson it is appended again.',
    ),
    fenced(
      'sh',
      `
wirewatch pull --base-url http://127.0.0.1:8080 --key-file key --into a.db --full --subscription 7001,7002
wirewatch pull --base-url http://127.0.0.1:8080 --key-file key --into b.db --full --subscription 7003 --content-type text`,
    ),
    points(
      'The key file holds the key alone, or what "wirewatch key create --json" printed.',
      'On a terminal it shows how far it is; elsewhere it says so once a minute on stderr. At the end it says how many detections were new to the copy or newer than what it had: the stream repeats some that the walk has read.',
    ),
    '2. The file',
    points(
      'SQLite: detections (id, version, body), the body being the detection as JSON without event, and state with one row, the cursor. Rows and cursor are written in one transaction, so it may be killed at any moment. Read it with any SQLite, while pull runs too.',
      'With --format ndjson every version that is read is a line that is appended. How far the lines go, and the cursor, stand beside it in FILE.place, and FILE.lock keeps a second pull away; lines behind that length are cut off when it goes on.',
    ),
    '3. Comparing a copy',
    paragraph(`
      With --compare, pull reads every period of the service and says what differs from the copy. It changes neither,
      may run beside a pull that follows, and ends with exit code 1 when something differs.`),
    fenced('sh', 'wirewatch pull --base-url http://127.0.0.1:8080 --key-file key --into copy.db --compare'),
    points(
      'It compares id, version and every member but last_scored_at and exported_at, which a new score alters in place without a new version, and but the address of the appliance in source.image_url.',
      'What changed since the copy was brought up to date is left out, and counted. pull knows from the cursor of the copy when that was.',
      'The copy of another client is compared as lines of JSON, one whole detection each, with --format ndjson. With --since, give the time at which it was brought up to date; without, what is compared is up to date now. Of a detection with several lines the highest version counts.',
      'It is for full copies, reads every detection once (which counts against the daily allowance), and holds some 300 bytes for each in memory.',
    ),
    '4. When the service says no',
    points(
      '429, 500, 503 and a service that cannot be reached: it waits, twice as long each time, or as long as Retry-After says, which for the daily allowance is until 00:00 UTC. It says so on stderr.',
      '400, 401, 403 and 404 end it with the detail that the service gave, and exit code 1.',
    ),
  );
}
