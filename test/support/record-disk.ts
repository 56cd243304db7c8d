/**
 * Preloaded into the program (`--import`): appends each {@link DiskCall} to the file that WIREWATCH_TEST_CALLS names.
 */
import { openSync, writeSync } from 'node:fs';
import { recordDiskCalls } from './disk-calls.ts';

const path = process.env.WIREWATCH_TEST_CALLS;
if (path === undefined) throw new Error('WIREWATCH_TEST_CALLS: expected the path of a file');
const [file, write] = [openSync(path, 'a'), writeSync];
recordDiskCalls((call) => write(file, `${JSON.stringify(call)}\n`));
