/** A small share of the torture's part `faults`: see test/torture/faults.ts. Its first cases are one of every call. */
import { tortureTest } from '../support/torture-test.ts';
import { words } from '../support/words.ts';
import { faults } from '../torture/faults.ts';

const CALLS = words('create open read pread64 write pwrite64 fsync rename unlink mkdir statx close');

tortureTest(faults, { share: 0.0055, fired: CALLS.map((call) => `in ${call}`) });
