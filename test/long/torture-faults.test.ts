/** A small share of the torture's part `faults`: see test/torture/faults.ts. */
import { tortureTest } from '../support/torture-test.ts';
import { words } from '../support/words.ts';
import { faults } from '../torture/faults.ts';

const CALLS = words(`
  create open read pread64 write pwrite64 fsync rename statx scandir64`);

tortureTest(faults, {
  share: 0.001,
  fired: [
    ...CALLS.map((call) => `EIO from ${call}`),
    'ENOSPC from pwrite64',
    'EBUSY from rename',
    'ESTALE from statx',
  ],
});
