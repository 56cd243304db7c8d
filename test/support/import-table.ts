/** Which folder may import which, and the files that may import each dependency; structure.test.ts checks it. */
import { words } from './words.ts';

/** A table whose entries are lists of words. */
function listed(table: Readonly<Record<string, string>>): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(Object.entries(table).map(([name, list]) => [name, words(list)]));
}

/**
 * The folders of src, each with the others that it may import; a file directly in src/ counts as a folder, and so does
 * a folder in tools/. One that is not here may import none. The test fails for any other import, and for listed ones
 * that are unused.
 */
export const ROOMS = listed({
  'time-zone.ts': 'bounded-map.ts get-or-make.ts',
  'zone-days.ts': 'bounded-map.ts get-or-make.ts time.ts',
  'refused.ts': 'problem-titles.ts',
  'clock.ts': 'time.ts',
  'hanging-calls.ts': 'time.ts',
  'log-output.ts': 'pace.ts printable.ts',
  'logger.ts': 'log-output.ts printable.ts refused.ts',
  'thread-call.ts': 'refused.ts',
  detection: 'bounded-map.ts get-or-make.ts is-object.ts seal.ts',
  limits: 'addresses.ts bounded-map.ts counted.ts get-or-make.ts one-at-a-time.ts pace.ts refused.ts time.ts',
  config:
    'addresses.ts auth copy counted.ts detection exports nearest.ts operations refused.ts store time-zone.ts time.ts',
  store: 'clock.ts counted.ts get-or-make.ts packed.ts refused.ts time.ts',
  auth: 'addresses.ts bounded-map.ts clock.ts counted.ts detection limits refused.ts seal.ts store time.ts',
  windows: 'detection get-or-make.ts store time.ts',
  log: 'counted.ts detection get-or-make.ts is-object.ts own-process.ts pace.ts refused.ts store time.ts version.ts',
  exports:
    'bounded-map.ts counted.ts detection get-or-make.ts is-object.ts nearest.ts refused.ts time.ts zone-days.ts',
  drop: 'detection exports refused.ts store time.ts windows',
  ingest: `
    auth clock.ts counted.ts detection drop exports log pace.ts packed.ts refused.ts store thread-call.ts
    time.ts wakeable-timer.ts windows`,
  query: `
    bounded-map.ts counted.ts detection get-or-make.ts is-object.ts limits log printable.ts refused.ts release-memory.ts
    seal.ts store time-zone.ts time.ts zone-days.ts`,
  copy: 'auth clock.ts counted.ts exports hanging-calls.ts ingest is-object.ts log pace.ts refused.ts store time.ts',
  health:
    'auth copy counted.ts detection hanging-calls.ts ingest logger.ts pace.ts printable.ts refused.ts store time.ts windows',
  check: 'auth config copy drop health http log log-output.ts operations refused.ts store time.ts',
  'text-layout.ts': 'counted.ts printable.ts',
  operations: `
    addresses.ts auth config counted.ts detection drop problem-titles.ts exports get-or-make.ts health ingest limits log
    nearest.ts own-process.ts query refused.ts setup store text-layout.ts time-zone.ts time.ts version.ts windows`,
  'tools/generate': 'detection exports refused.ts time.ts',
  manual: 'packed.ts',
  'tools/pull': 'counted.ts detection refused.ts store text-lines.ts time.ts',
  samples: 'packed.ts',
  setup: 'config copy refused.ts samples store',
  'tools/lab': `
    addresses.ts admin appliance.ts auth clock.ts config detection problem-titles.ts http ingest limits log
    operations query refused.ts store time.ts tools/generate windows`,
  openapi: 'auth detection is-object.ts problem-titles.ts http',
  http: `
    addresses.ts auth clock.ts config counted.ts detection problem-titles.ts health limits logger.ts one-at-a-time.ts pace.ts
    printable.ts query refused.ts release-memory.ts seal.ts store time.ts`,
  admin: `
    auth clock.ts config detection drop health http ingest is-object.ts limits logger.ts manual
    one-at-a-time.ts operations packed.ts query refused.ts seal.ts store thread-call.ts time.ts version.ts windows`,
  console: 'admin auth detection exports operations setup time.ts',
  'appliance-copy.ts':
    'auth clock.ts config copy health log logger.ts pace.ts refused.ts store time.ts wakeable-timer.ts',
  'appliance.ts': `
    admin appliance-copy.ts appliance-ingest.ts auth bounded-map.ts clock.ts config health http ingest
    limits log logger.ts openapi operations prepare-access.ts store time.ts`,
  'appliance-ingest.ts': `
    admin appliance-copy.ts auth bounded-map.ts config health http ingest logger.ts operations pace.ts
    refused.ts seal.ts store time.ts`,
  cli: `
    appliance-ingest.ts appliance.ts auth check clock.ts config copy counted.ts detection exports health
    ingest log logger.ts manual nearest.ts openapi operations pace.ts packed.ts printable.ts refused.ts
    samples setup store text-layout.ts text-lines.ts time.ts tools/generate tools/lab tools/pull version.ts windows`,
  'prepare-access.ts': 'auth clock.ts config logger.ts store',
  'launch.ts': 'setup',
  'main.ts': 'cli packed.ts',
  'own-process.ts': 'packed.ts',
  'worker.ts': 'admin copy ingest',
});

/** The only files, or folders (with a trailing slash), that import each dependency. */
export const DOORS = listed({
  '@sinclair/typebox': `
    admin/ config/ console/ copy/ http/ limits/ log/ openapi/ operations/ query/ store/role.ts
    tools/pull/`,
  aws4fetch: 'copy/s3-place.ts',
  'better-sqlite3': 'store/addon.ts store/database.ts',
  chokidar: 'drop/drop-folder.ts',
  commander: 'cli/',
  'csv-parse': 'exports/csv.ts',
  htm: 'console/',
  marked: 'manual/html.ts',
  pino: 'logger.ts',
  'pino-pretty': 'logger.ts',
  polka: 'http/server.ts',
  preact: 'console/',
  'prom-client': 'admin/metrics.ts',
  'smol-toml': 'config/file.ts',
  'temporal-polyfill': 'zone-days.ts',
  tldts: 'exports/article-address.ts',
});
