/** A small share of the torture's part `http`: see test/torture/http.ts. */
import { tortureTest } from '../support/torture-test.ts';
import { http, httpWith } from '../torture/http.ts';

tortureTest(
  { ...http, run: (options) => httpWith(options, { hasShortTimeouts: true }) },
  { share: 0.002, fired: ['requests', 'commands', 'silent', 'never reads', 'slow head'] },
);
