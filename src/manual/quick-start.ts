/** Manual, topic `quick-start`. */
import { fenced, page, paragraph } from './text.ts';

export function quickStartText(): string {
  return page(
    'QUICK START',
    paragraph(`
      Wirewatch reads export files that say where a news agency's stories and photos were found, and serves each
      find, a detection, to the agency's customers as a stream of changes over HTTP.`),
    'To see it work, without setting anything up:',
    fenced('sh', 'wirewatch demo'),
    paragraph(`
      It prints keys, a detection and calls to paste, and drops an export with new and changed detections every
      twenty seconds, for as long as it runs. Keys that you make in it stay. It keeps everything in ./wirewatch-demo, which can be deleted when it has stopped.`),
    'To set it up: a customer (an account), what it watches (a subscription), and a key to read with.',
    fenced(
      'sh',
      `
wirewatch account add acme --name "Acme News"
wirewatch subscription add 7001 --account acme --time-zone Europe/Berlin
wirewatch key create --account acme --name Dashboard --scopes detections:read --subscriptions 7001`,
    ),
    'The last one prints the key, this one time. Then start the appliance:',
    fenced('sh', 'wirewatch serve'),
    paragraph(`
      It listens on http://127.0.0.1:8080, reads what is dropped into ./wirewatch-data/drop, and logs to stderr.
      As long as there is no key it names the commands that are missing.
      In another terminal, drop a sample export of the last ten minutes, and see what became of it:`),
    fenced(
      'sh',
      `
wirewatch generate --out wirewatch-data/drop --rows 20 --subscriptions 7001
wirewatch ingest status`,
    ),
    'A client reads what was delivered since a time in the last 31 days:',
    fenced(
      'sh',
      `
curl -H "Authorization: Bearer $KEY" "http://127.0.0.1:8080/v1/detections/changes?since=2026-11-21T10:00:00Z"`,
    ),
    paragraph(`
      To go on: the topic export-format for the files, change-stream for clients, operations for what can go
      wrong, security before others can reach it.`),
  );
}
