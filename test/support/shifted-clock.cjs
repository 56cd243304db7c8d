/** Loaded before the program: its clock is wrong by so many milliseconds, on every thread. */
const shiftMs = Number(process.env.TEST_CLOCK_SHIFT_MS);
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(RealDate.now() + shiftMs);
    else super(...args);
  }
  static now() {
    return RealDate.now() + shiftMs;
  }
};
