/** Which folder may import which, and the files that may import each dependency; structure.test.ts checks it. */
import { words } from './words.ts';

/** A table whose entries are lists of words. */
const listed = (table: Readonly<Record<string, string>>): Readonly<Record<string, readonly string[]>> =>
  Object.fromEntries(Object.entries(table).map(([name, list]) => [name, words(list)]));

/** Files directly in src/ that know nothing of the service: every other file may import them. */
export const HELPERS = words(`
  addresses.ts bounded-map.ts counted.ts get-or-make.ts is-object.ts nearest.ts one-at-a-time.ts pace.ts packed.ts
  printable.ts problem-titles.ts refused.ts text-lines.ts time.ts version.ts`);

/**
 * The folders of src, each with the others that it may import besides {@link HELPERS}; a file directly in src/ counts as
 * a folder, and so does a folder in tools/. One that is not here may import none. The test fails for any other import,
 * and for listed ones that are unused.
 */
export const ROOMS = listed({
  'logger.ts': 'log-output.ts',
  detection: 'seal.ts',
  config: 'auth copy detection exports operations store time-zone.ts windows',
  store: 'clock.ts',
  auth: 'clock.ts detection limits seal.ts store',
  windows: 'detection store',
  log: 'detection own-process.ts store',
  exports: 'detection zone-days.ts',
  drop: 'detection exports store windows',
  ingest: 'auth clock.ts detection drop exports log store thread-call.ts wakeable-timer.ts windows',
  query: 'detection limits log release-memory.ts seal.ts store time-zone.ts zone-days.ts',
  copy: 'auth clock.ts hanging-calls.ts ingest log store',
  health: 'auth copy detection hanging-calls.ts ingest logger.ts store windows',
  check: 'auth config copy drop health http log log-output.ts operations store',
  operations: `
    auth config detection drop exports health ingest limits log own-process.ts query setup store
    text-layout.ts time-zone.ts windows`,
  'tools/generate': 'detection exports',
  'tools/pull': 'detection store',
  setup: 'config copy store',
  'tools/lab': `
    admin appliance.ts auth clock.ts config detection http ingest limits log operations query store
    tools/generate windows`,
  openapi: 'auth detection http',
  http: 'auth clock.ts config detection health limits logger.ts query release-memory.ts seal.ts store',
  admin: `
    auth clock.ts config detection drop health http ingest limits logger.ts manual operations query seal.ts
    store thread-call.ts windows`,
  console: 'admin auth detection exports operations setup',
  'appliance-copy.ts': 'auth clock.ts config copy health log logger.ts store wakeable-timer.ts',
  'appliance.ts': `
    admin appliance-copy.ts appliance-ingest.ts auth clock.ts config health http ingest limits log
    openapi operations prepare-access.ts store`,
  'appliance-ingest.ts': `
    admin appliance-copy.ts auth config health http ingest logger.ts operations seal.ts store`,
  cli: `
    appliance-ingest.ts appliance.ts auth check clock.ts config copy detection drop exports health ingest log
    logger.ts manual openapi operations setup store text-layout.ts tools/generate tools/lab
    tools/pull windows`,
  'prepare-access.ts': 'auth clock.ts config logger.ts store',
  'launch.ts': 'setup',
  'main.ts': 'cli',
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
