console.log(`Cache not found for input keys: ${process.env.INPUT_KEY}`)
