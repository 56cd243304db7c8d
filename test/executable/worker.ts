/** The worker of test/executable/main.ts: returns the result of a query, and the stack of an error. */
import { parentPort, workerData } from 'node:worker_threads';
import Database from 'better-sqlite3';
import { withNativeBinding } from '../../src/store/addon.ts';

const database = new Database(':memory:', withNativeBinding());
const sqlite: unknown = database.prepare(String(workerData)).pluck().get();
database.close();
parentPort?.postMessage({ sqlite, stack: new Error('shown').stack });
