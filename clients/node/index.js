export { bump, cancel, enqueue, enqueueMany, enqueueSigned, retry, status } from './lib/functions.js'
export { encode, TxrelayHttpError } from './lib/http.js'
export { errorCode, fromDrizzle, fromKnex, fromKysely, fromPostgres, fromPrisma } from './lib/query.js'
export { follow, wait } from './lib/read.js'
