"""Classification of sentences, trees and documents."""
