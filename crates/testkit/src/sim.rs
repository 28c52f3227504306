//! A placeholder for the seeded world.
