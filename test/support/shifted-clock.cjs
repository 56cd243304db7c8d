/**
 * Loaded before the program, on every thread: its clock is wrong by TEST_CLOCK_SHIFT_MS milliseconds; or by as many as the
 * file TEST_CLOCK_FILE has, in 64 bits, whenever a test changes them: then all clocks go along, as where time has passed.
 */
const { openSync, readSync } = require('node:fs');
const { ServerResponse } = require('node:http');

const { TEST_CLOCK_SHIFT_MS = 0, TEST_CLOCK_FILE } = process.env;
const RealDate = Date;
const realMonotonic = performance.now.bind(performance);
const shiftMs = new BigInt64Array([BigInt(TEST_CLOCK_SHIFT_MS)]);
const file = TEST_CLOCK_FILE === undefined ? null : openSync(TEST_CLOCK_FILE);

function now() {
  if (file !== null) readSync(file, shiftMs, 0, shiftMs.byteLength, 0);
  return RealDate.now() + Number(shiftMs[0]);
}

now();
const [begunMs] = shiftMs;
// As of the last time that the other clock was asked: whoever compares both never sees a change between them.
performance.now = () => realMonotonic() + Number(shiftMs[0] - begunMs);
globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(now());
    else super(...args);
  }
  static now() {
    return now();
  }
};

/** Node has a clock of its own for this header. */
const { writeHead } = ServerResponse.prototype;
ServerResponse.prototype.writeHead = function (...args) {
  this.setHeader('Date', new Date().toUTCString());
  return writeHead.apply(this, args);
};
