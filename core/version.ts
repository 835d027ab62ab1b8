// The version that outgoing requests, logs, metrics and `fairlead version` report.
// Read from package.json so that there is one place to bump; the bundler inlines it.

import packageJson from '../package.json' with { type: 'json' };

export const VERSION: string = packageJson.version;
export const USER_AGENT = `fairlead/${VERSION}`;
export const CLIENT_INFO = { name: 'fairlead', version: VERSION } as const;
