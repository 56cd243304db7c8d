/**
 * A program that test/long/executable-addon.test.ts packs: opens a database on the main thread and one in a worker, and
 * prints the results as one JSON document. Prints the detail of Refused on stderr, as the real program does.
 */
import Database from 'better-sqlite3';
import { startWorker } from '../../src/packed.ts';
import { Refused } from '../../src/refused.ts';
import { withNativeBinding } from '../../src/store/addon.ts';

function main(): void {
  const database = new Database(':memory:', withNativeBinding());
  const mainSqlite: unknown = database.prepare('SELECT sqlite_version()').pluck().get();
  database.close();
  startWorker('SELECT sqlite_version()').once('message', async (worker: unknown) => {
    const { sep } = await import('node:path');
    console.log(JSON.stringify({ mainSqlite, worker, execArgv: process.execArgv, sep }));
  });
}

try {
  main();
} catch (error) {
  if (!(error instanceof Refused)) throw error;
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 78;
}
