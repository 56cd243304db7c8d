/** The main thread's end of the operations thread, for tests without the rest of an appliance. */
import assert from 'node:assert/strict';
import { after } from 'node:test';
import { createOperations, type Operations } from '../../src/admin/thread-client.ts';
import { createDenials } from '../../src/auth/denials.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Live } from '../../src/operations/operation.ts';
import { failed } from '../../src/refused.ts';

type Options = Parameters<typeof createOperations>[0];

/** What a running appliance without alerts says of itself. */
export const LIVE: Live = {
  url: 'http://127.0.0.1',
  console: null,
  unreadable: null,
  alerts: [],
  role: 'writer',
  copy: null,
  reading: null,
};

/** @param more in place of what is given here: nobody ingests, and there are no settings but the defaults */
export function operationsOptions(dataFolder: string, more: Partial<Options> = {}): Options {
  return {
    settings: { config: loadConfig({ flags: {}, env: {}, file: '', dataFolder }), kind: 'appliance' },
    ingest: { ask: () => Promise.reject(failed('nobody ingests')), wake() {}, async promote() {} },
    denials: createDenials(),
    onDenied() {},
    lab: null,
    live: () => LIVE,
    onSpareStale() {},
    onFault: ({ message }) => assert.fail(message),
    ...more,
  };
}

/** Closed after the tests of the file, or the test, that calls it. @param more as of {@link operationsOptions} */
export function testOperations(dataFolder: string, more?: Partial<Options>): Operations {
  const operations = createOperations(operationsOptions(dataFolder, more));
  after(() => operations.close());
  return operations;
}
